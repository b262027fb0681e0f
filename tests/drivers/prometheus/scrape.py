"""Scrapes an address as Prometheus does and prints what it understood.

    scrape.py http://HOST:PORT/metrics

Output: a JSON list of families: name, type, and samples as [name, labels, value]. Ends with status 1 when the page is not of
Prometheus's text format, says a family twice, or has a histogram whose buckets do not add up.
"""

import json
import math
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def check(families):
    names = [family.name for family in families]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice, f"families that come twice: {twice}"
    for family in families:
        assert family.documentation, f"{family.name} has no help"
        seen = set()
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in seen, f"a sample that comes twice: {key}"
            seen.add(key)
        if family.type == "histogram":
            check_histogram(family)


def check_histogram(family):
    buckets, counts = {}, {}
    for sample in family.samples:
        labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[labels] = sample.value
    for labels, found in buckets.items():
        assert found == sorted(found), f"{family.name}{labels}: bounds do not ascend"
        values = [value for _, value in found]
        assert values == sorted(values), f"{family.name}{labels}: counts go down"
        assert found[-1] == (math.inf, counts[labels]), f"{family.name}{labels}: the last bucket is not all"


def main():
    with urllib.request.urlopen(sys.argv[1]) as answer:
        kind = answer.headers["Content-Type"]
        assert kind.startswith("text/plain; version=0.0.4"), kind
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    check(families)
    shown = [
        {
            "name": family.name,
            "type": family.type,
            "samples": [
                [sample.name, sample.labels, None if math.isnan(sample.value) else sample.value]
                for sample in family.samples
            ],
        }
        for family in families
    ]
    json.dump(shown, sys.stdout)


main()
