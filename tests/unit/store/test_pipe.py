"""Commands as the server reads them."""

from rollcage.store.pipe import lengthened, packed


def test_words_can_be_added_to_a_packed_command() -> None:
    words = ("EVALSHA", "ab", 1, "key", b"\r\n*9\r\n", "é")

    for first in range(1, len(words)):
        assert lengthened(packed(words[:first]), words[first:]) == packed(words)
