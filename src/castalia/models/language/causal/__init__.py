"""Neural language models that predict the next token: RNN, window and GPT."""

__all__: list[str] = []
