import re
from itertools import product

from rollcage.store.keys import TEMPLATES, Keys


def test_all_names_of_an_installation_share_one_hash_tag() -> None:
    keys = Keys("team-a")

    assert keys("ready", "py") == "{team-a}:env:py:ready"
    assert all(
        keys(name, *"xy"[: template.count("%s")]).startswith("{team-a}:") for name, template in TEMPLATES.items()
    )


def test_no_two_kinds_of_keys_can_have_the_same_name() -> None:
    # Whatever is filled in is a hash, a DNS name or, at the very end, a sandbox: none can pass for a template's word.
    filled = {name: re.escape(text).replace("%s", "[0-9a-f.-]+") for name, text in TEMPLATES.items()}
    samples = {name: text.replace("%s", "0") for name, text in TEMPLATES.items()}

    for (name, pattern), (other, sample) in product(filled.items(), samples.items()):
        assert (name == other) == bool(re.fullmatch(pattern, sample))
