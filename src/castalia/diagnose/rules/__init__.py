"""From a record to a diagnosis: rules, each of which knows one disease, and reasoning on them."""

from castalia.diagnose.rules.rule_table import LASTING, RULES, Rule, judge

__all__ = ["LASTING", "RULES", "Rule", "judge"]
