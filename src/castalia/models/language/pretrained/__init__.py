"""Encoders pretrained on unlabelled texts (BERT, RoBERTa, ELMo), and tasks on them and on GPT."""

__all__: list[str] = []
