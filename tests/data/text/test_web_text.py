"""Web pages to texts, by the rules of C4; the pages are those of T5's lemon example."""

import pytest

from castalia.data.text import clean_lines, clean_page, clean_pages, drop_repeated, is_prose
from castalia.errors import InvalidParameter

LEMON = (
    "The lemon, Citrus Limon (l.) Osbeck, is a species of small evergreen tree in the flowering "
    "plant family rutaceae. The tree's ellipsoidal yellow fruit is used for culinary and "
    "non-culinary purposes throughout the world, primarily for its juice, which has both culinary "
    "and cleaning uses. The juice of the lemon is about 5% to 6% citric acid, with a ph of around "
    "2.2, giving it a sour taste."
)
ORIGIN = (
    "The origin of the lemon is unknown, though lemons are thought to have first grown in Assam (a "
    "region in northeast India), northern Burma or China. A genomic study of the lemon indicated "
    "it was a hybrid between bitter orange (sour orange) and citron."
)
ARTICLE = f"Menu\nLemon\nIntroduction\n{LEMON}\nArticle\n{ORIGIN}\n"
DRIED = (
    "Organic dried lemons from our farm in California. Lemons are harvested and sun-dried for "
    "maximum flavor. Good in soups and on popcorn."
)
SHOP = (
    "Please enable JavaScript to use our site.\nHome\nProducts\nShipping\nContact\nFAQ\n"
    f"Dried Lemons, $3.59/pound\n{DRIED}\n{LEMON}\n"
)
FILLER = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit. Curabitur in tempus quam. In mollis "
    "et ante at consectetur. Aliquam erat volutpat. Donec at lacinia est.\n"
)
CODE = "function Ball(r) {\n  this.radius = r;\n  this.area = pi * r ** 2;\n}\n"


def test_the_lemon_pages_are_filtered_as_in_the_example():
    kept = list(clean_pages([ARTICLE, SHOP, FILLER, CODE]))
    assert kept == [f"{LEMON}\n{ORIGIN}", DRIED]


@pytest.mark.parametrize(
    "line",
    [
        "Home and products and shipping and contact",
        "Dried Lemons, $3.59/pound",
        "Please enable JavaScript to use our site.",
        "We use cookies to make our site better.",
        "Read our privacy policy before you go on.",
        "Four words are few.",
        "This line goes on for a while...",
    ],
    ids=["menu", "price", "javascript", "cookies", "policy", "short", "cut off"],
)
def test_lines_that_are_no_sentences_go(line):
    good = "This one stays where it was."
    assert clean_lines(f"{line}\n{good}") == good


def test_marks_of_citations_go_and_quotes_may_end_a_line():
    assert clean_lines('He said so long ago.[12]\nShe said "that is how it was"') == (
        'He said so long ago.\nShe said "that is how it was"'
    )
    assert clean_lines("It is known to few people[citation needed].") == (
        "It is known to few people."
    )


def test_pages_of_code_filler_and_bad_words_are_no_prose():
    assert [is_prose(page) for page in (ARTICLE, SHOP, FILLER, CODE)] == [True, True, False, False]
    assert not is_prose("A rude word.", bad_words={"rude"})
    assert is_prose("A crude word.", bad_words={"rude"})


def test_a_page_needs_three_sentences():
    assert clean_page(DRIED) == DRIED
    two = DRIED.rsplit(" Good", 1)[0]
    assert clean_page(two) is None
    assert clean_page(two, sentences=2) == two
    with pytest.raises(InvalidParameter, match="at least 1; got 0 and 3"):
        clean_page(DRIED, words=0)


def test_of_repeated_stretches_only_the_first_stays_in_one_page_too():
    text = "It rains. It pours. Go home."
    assert list(drop_repeated([f"{text}\nWhy? {text}"])) == [f"{text}\nWhy?"]
    other = "It rains. It pours. Stay here."  # two sentences in common are no repetition
    assert list(drop_repeated([text, other])) == [text, other]
    assert list(drop_repeated([text, text, other])) == [text, other]


def test_a_rule_for_the_language_is_asked():
    pages = [DRIED, LEMON]
    assert list(clean_pages(pages, language=lambda page: "popcorn" in page)) == [DRIED]


def test_pages_are_read_one_by_one():
    def endless():
        while True:
            yield DRIED

    assert next(clean_pages(endless())) == DRIED
