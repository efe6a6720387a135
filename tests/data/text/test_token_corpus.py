"""Corpora larger than memory: the same training, from a file of ids."""

import gzip
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from castalia import Callback, Training
from castalia.data.text import Corpus, token_corpus
from castalia.data.text.language_adapter import LanguageAdapter
from castalia.data.text.token_corpus import CorpusRows
from castalia.data.tokenizers import ByteBPETokenizer, CharTokenizer
from castalia.data.utf8_files import read_lines, read_pieces, read_text
from castalia.errors import InvalidData
from castalia.models.language import GPTLanguageModel, RNNLanguageModel, WindowLanguageModel

BOOK = "the cat sat on the mat.\nthe dog sat on the log.\n" * 30
PLAIN = Training(watch=False, verbose=False)
SMALL = {
    "gpt": GPTLanguageModel(dim=8, depth=1, heads=2, dropout=0.1, context=16, stride=12),
    "rnn": RNNLanguageModel(hidden=8, context=8),
    "window": WindowLanguageModel(dim=4, hidden=8, context=16),
}


def made(kind, **training):
    settings = {"epochs": 2, "batch_size": 8, "lr": 1e-2, "random_state": 0}
    return SMALL[kind].set_params(**settings, training=replace(PLAIN, **training))


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(BOOK, encoding="utf-8")
    return Corpus(path, folder=tmp_path / "ids")


@pytest.mark.parametrize("kind", SMALL)
def test_a_model_of_a_corpus_is_that_of_its_text(kind, book):
    streamed = {k: v.clone() for k, v in made(kind).fit(book).module_.state_dict().items()}
    text = made(kind).fit([BOOK])
    for name, value in text.module_.state_dict().items():
        assert torch.equal(streamed[name], value)
    assert text.perplexity(book) == pytest.approx(text.perplexity([BOOK]), rel=1e-6)


def test_texts_of_a_folder_stand_between_ends_and_lines_may_be_texts(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("ba", encoding="utf-8")
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(b"ab\n\nb")
    (tmp_path / "notes.md").write_text("not read", encoding="utf-8")
    tokenizer = CharTokenizer().fit(["ab\n"])
    end, a, b, line = (tokenizer.find_id(name) for name in ("end", "a", "b", "\n"))
    whole = Corpus(tmp_path, folder=tmp_path / "ids")
    assert [path.name for path in whole.files] == ["a.txt.gz", "two.txt"]
    assert whole.encode(tokenizer).ids.tolist() == [end, a, b, line, line, b, end, b, a, end]
    lines = Corpus(tmp_path, lines=True, folder=tmp_path / "ids")
    assert lines.encode(tokenizer).ids.tolist() == [end, a, b, end, b, end, b, a, end]


def test_a_corpus_is_encoded_once_until_a_file_or_the_tokenizer_changes(book, monkeypatch):
    tokenizer = CharTokenizer().fit(book)
    first = book.encode(tokenizer)
    counted, encode = [], CharTokenizer.encode
    spy = lambda self, texts, **k: counted.append(len(texts)) or encode(self, texts, **k)  # noqa: E731
    monkeypatch.setattr(CharTokenizer, "encode", spy)
    assert np.array_equal(book.encode(tokenizer).ids, first.ids)
    assert not counted
    book.files[0].write_text(BOOK + "a", encoding="utf-8")
    assert len(book.encode(tokenizer).ids) == len(first.ids) + 1
    assert counted
    other = book.encode(CharTokenizer(special=("<unk>",)).fit(book))
    assert len(other.ids) == len(first.ids) + 1 - 2  # no ends


def most_held(path, lines):
    """Most bytes held while a file of so many lines is encoded, and every block is read once."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"line {i:7} of a text never held as a whole\n" for i in range(lines))
    adapter = LanguageAdapter(CharTokenizer().fit(["0123456789 abcdefghijklmnopqrstuvwxyz\n"]))
    tracemalloc.start()
    rows = adapter.check(Corpus(path, folder=path.parent / "ids"), "fit")
    for index in torch.arange(len(rows)).split(64):
        rows.take(index)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows.source.ids) == path.stat().st_size + 2
    assert rows.source.ids.dtype == np.uint16
    return peak


def test_what_is_held_of_a_corpus_does_not_grow_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(token_corpus, "TOGETHER", 4)  # pieces: the small text has more of them
    small, large = (most_held(tmp_path / f"{n}.txt", n) for n in (15_000, 75_000))
    assert large < 1.1 * small
    assert large < 2.5 * 75_000 * 44  # as one array of eight bytes an id it would be eight times


def test_large_vocabularies_take_four_bytes(book, monkeypatch):
    tokenizer = CharTokenizer().fit(book)
    monkeypatch.setattr(CharTokenizer, "__len__", lambda self: 70_000)
    assert book.encode(tokenizer).ids.dtype == np.uint32


def test_pieces_of_a_file_are_its_text(tmp_path):
    path = tmp_path / "a.txt"
    text = "\ufeff" + "åäö and 日本\n" * 50 + "x" * 300 + " " + "y" * 300
    path.write_text(text, encoding="utf-8")
    pieces = list(read_pieces(path, size=64))
    assert "".join(pieces) == text[1:] == read_text(path)
    assert all(piece.endswith("\n") for piece in pieces[:5])
    assert max(map(len, pieces)) < 700


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 16])
def test_a_byte_order_mark_moves_no_offset(tmp_path, size):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfab\xff")
    with pytest.raises(InvalidData, match=r"0xff at offset 5 \(line 1\)"):
        list(read_pieces(path, size=size))
    with pytest.raises(InvalidData, match=r"0xff at offset 5 \(line 1\)"):
        list(read_lines(path))


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_bytes_that_are_not_utf8_are_named_by_file_and_offset(tmp_path, size):
    path = tmp_path / "latin.txt"
    path.write_bytes("für\n".encode() * 9 + "für\n".encode("latin1"))
    with pytest.raises(InvalidData, match=r"latin.txt.*0xfc at offset 46 \(line 10\)"):
        list(read_pieces(path, size=size))
    with pytest.raises(InvalidData, match="offset 46"):
        GPTLanguageModel(tokenizer=CharTokenizer().fit(["für\n"])).fit(
            Corpus(path, folder=tmp_path / "ids")
        )


def test_empty_files_and_missing_ones_are_named(tmp_path):
    (tmp_path / "full.txt").write_text("a text", encoding="utf-8")
    (tmp_path / "hollow.txt").write_text("", encoding="utf-8")
    with pytest.raises(InvalidData, match=r"hollow.txt` must hold a text"):
        Corpus(tmp_path, folder=tmp_path / "ids").encode(CharTokenizer().fit(["a text"]))
    assert not list((tmp_path / "ids").glob("*"))  # nothing half-written is left
    with pytest.raises(InvalidData, match=r"nowhere` must be a file or a folder"):
        list(Corpus(tmp_path / "nowhere"))


def test_a_file_of_ids_that_was_cut_off_is_named(book):
    tokenizer = CharTokenizer().fit(book)
    book.encode(tokenizer)
    (ids,) = book.folder.glob("*/ids.bin")
    ids.write_bytes(ids.read_bytes()[:100])
    with pytest.raises(InvalidData, match=r"must hold 1,442 token ids; it holds 50"):
        book.encode(tokenizer)


def test_large_files_are_not_held_in_memory(book, tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path / "cache"))
    path = book.files[0]
    adapter = LanguageAdapter("characters", context=8)
    assert not isinstance(adapter.check(path, "fit"), CorpusRows)
    monkeypatch.setattr(token_corpus, "LARGE", 1000)
    for source in (path, [path], path.parent):
        rows = LanguageAdapter("characters", context=8).check(source, "fit")
        assert isinstance(rows, CorpusRows)
    assert rows.source.ids.dtype == np.uint16
    assert np.array_equal(rows.take(torch.arange(len(rows))), adapter.check([BOOK], "fit"))


def test_an_encoding_that_was_cut_off_goes_on_and_gives_the_same_ids(book, tmp_path, monkeypatch):
    monkeypatch.setattr(token_corpus, "TOGETHER", 1)
    monkeypatch.setattr(token_corpus, "KEPT", 10)
    monkeypatch.setattr(token_corpus, "read_pieces", lambda p, o: iter(BOOK.splitlines(True)))
    tokenizer, encode, seen = CharTokenizer().fit([BOOK]), CharTokenizer.encode, []

    def cut_off(self, texts, **options):
        seen.extend(texts)
        if len(seen) == 25:
            raise KeyboardInterrupt
        return encode(self, texts, **options)

    monkeypatch.setattr(CharTokenizer, "encode", cut_off)
    with pytest.raises(KeyboardInterrupt):
        book.encode(tokenizer)
    found = book.encode(tokenizer)
    assert seen[25:] == BOOK.splitlines(True)[20:]  # what was kept is not encoded again
    whole = Corpus(book.files[0], folder=tmp_path / "other").encode(tokenizer)
    assert np.array_equal(found.ids, whole.ids)
    assert found.fingerprint == whole.fingerprint


def test_of_several_processes_one_encodes(book):
    tokenizer = CharTokenizer().fit(book)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: book.encode(tokenizer).ids, range(3)))
    assert all(np.array_equal(ids, found[0]) for ids in found)
    assert len(list(book.folder.iterdir())) == 1


def test_the_default_tokenizer_is_learnt_from_a_part_of_a_large_corpus(book, monkeypatch):
    monkeypatch.setattr(token_corpus, "LEARNT", 500)
    monkeypatch.setattr(token_corpus, "read_pieces", lambda p, o: iter(BOOK.splitlines(True)))
    assert 400 < sum(map(len, book.sample())) <= 500


class Interrupt(Callback):
    """Ctrl-C in the middle of an epoch."""

    def on_batch_end(self, state):
        if state.total == 7:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["gpt", "rnn"])
def test_a_cut_training_on_a_corpus_goes_on_to_the_same_bits(kind, book, tmp_path):
    kept = {"run": tmp_path / "run", "checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt):
        made(kind, **kept, callbacks=[Interrupt()]).fit(book)
    resumed = {k: v.clone() for k, v in made(kind, **kept).fit(book).module_.state_dict().items()}
    whole = made(kind).fit(book).module_.state_dict()
    assert all(torch.equal(resumed[name], value) for name, value in whole.items())


def test_a_tokenizer_is_learnt_from_a_corpus(book):
    learnt = ByteBPETokenizer(vocabulary_size=300).fit(book)
    text = ByteBPETokenizer(vocabulary_size=300).fit([BOOK])
    assert learnt.fingerprint == text.fingerprint
    rows = LanguageAdapter("byte-bpe", context=8).check(book, "fit")
    assert isinstance(rows, CorpusRows)
    assert rows.take(torch.tensor([0, 1]))[0, -1] == rows.take(torch.tensor([1]))[0, 0]
