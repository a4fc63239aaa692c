"""Call sites defined in the JSON of `heaptape dump` (docs/reference/trace-format.md)."""

FACTOR, MASK = 0xD6E8FEB86659FD93, (1 << 59) - 1


def read_sites(events):
    """Returns a map from (pid, number) to (return address, number of the outer site)."""
    sites = {}
    for e in events:
        if e["kind"] == "heaptape.frame":
            sites[e["pid"], e["site"]] = int(e["ptr"], 16), e["outer"]
        elif e["kind"] == "heaptape.frames":
            outer = e["outer"]
            for address in reversed([int(a, 16) for a in e["frames"]]):
                number = outer * FACTOR + address & MASK
                sites[e["pid"], number] = address, outer
                outer = number
    return sites
