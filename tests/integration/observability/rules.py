"""
The alerts on trial: for each the figures under which it fires, and those under which it must not.

One step of a series is a minute; promtool's own notation: ``0+2x30`` is thirty steps from 0, each 2 more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SWE = '{environment="swe"}'
EXPIRY = "rollcage_store_certificate_expiry_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class Case:
    """What Prometheus has scraped, when it is asked, and what it must say."""

    says: str
    alert: str
    series: dict[str, str]
    at: str
    labels: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def fires(self) -> bool:
        return bool(self.summary)


def _ended(masked: str, trainable: str) -> dict[str, str]:
    return {
        'rollcage_infra_failures_total{environment="swe",cause="evicted"}': masked,
        'rollcage_verdicts_total{environment="swe",verdict="masked",cause="evicted"}': masked,
        'rollcage_verdicts_total{environment="swe",verdict="trainable",cause="finished"}': trainable,
    }


def _pool(
    *, wanted: str, ready: str, claimed: str = "0x60", refills: str = "0x60", queue: str = "0x60"
) -> dict[str, str]:
    return {
        'rollcage_pool_sandboxes{environment="swe",state="wanted"}': wanted,
        'rollcage_pool_sandboxes{environment="swe",state="ready"}': ready,
        'rollcage_pool_sandboxes{environment="swe",state="claimed"}': claimed,
        'rollcage_pool_sandboxes{environment="swe",state="most"}': "600x60",
        f"rollcage_pool_refills_total{SWE}": refills,
        f"rollcage_queue_length{SWE}": queue,
    }


def _waits(within_10s: str, within_300s: str) -> dict[str, str]:
    buckets = {"10.0": within_10s, "300.0": within_300s, "+Inf": within_300s}
    return {f'rollcage_queue_seconds_bucket{{environment="swe",le="{le}"}}': steps for le, steps in buckets.items()}


def _certificates(**days: float) -> dict[str, str]:
    """Let each process have seen a certificate that lasts so long from the thirtieth minute on."""
    return {f'{EXPIRY}{{instance="{one}"}}': f"{1800 + left * 86400:.0f}x60" for one, left in days.items()}


ENVIRONMENT = {"environment": "swe"}

CASES = (
    Case(
        "every tenth rollout is masked",
        "RollcageInfraFailures",
        _ended("0+1x60", "0+9x60"),
        "30m",
        ENVIRONMENT,
        "10% of the rollouts of swe were failed by us",
    ),
    Case("one in a hundred is bad luck", "RollcageInfraFailures", _ended("0+1x60", "0+99x60"), "30m"),
    Case("of three rollouts one is no share", "RollcageInfraFailures", _ended("0x20 1x40", "0x20 2x40"), "25m"),
    Case("what the model broke is not ours", "RollcageInfraFailures", _ended("0x60", "0+10x60"), "30m"),
    Case(
        "every third rollout is masked",
        "RollcageStepUnsafe",
        _ended("0+5x60", "0+10x60"),
        "30m",
        ENVIRONMENT,
        "33.33% of the rollouts of swe are masked: skip it",
    ),
    Case("every tenth is a reason to look, not to skip", "RollcageStepUnsafe", _ended("0+1x60", "0+9x60"), "30m"),
    Case(
        "rollouts wait and nothing is ready",
        "RollcagePoolExhausted",
        _pool(wanted="50x60", ready="0x60", queue="12x60"),
        "10m",
        ENVIRONMENT,
        "12 rollouts wait and no sandbox of swe is ready",
    ),
    Case("an empty pool for which nobody waits", "RollcagePoolExhausted", _pool(wanted="0x60", ready="0x60"), "10m"),
    Case(
        "a burst that the pool takes in a minute",
        "RollcagePoolExhausted",
        _pool(wanted="50x60", ready="50x5 0x1 30x60", queue="0x5 200x1 0x60"),
        "10m",
    ),
    Case(
        "waits of minutes",
        "RollcageQueueWait",
        _waits("0x60", "0+10x60"),
        "30m",
        ENVIRONMENT,
        "Rollouts in line for swe wait up to 4m 45s (p95)",
    ),
    Case("waits of seconds", "RollcageQueueWait", _waits("0+10x60", "0+10x60"), "30m"),
    Case("nobody waits", "RollcageQueueWait", _waits("5x60", "5x60"), "30m"),
    Case(
        "a claim timed out, the first ever",
        "RollcageCallsTurnedAway",
        {'rollcage_call_failures_total{tool="shell",cause="claim_timed_out"}': "0x10 1x20"},
        "12m",
        {"cause": "claim_timed_out"},
        "Calls were answered with 503: claim_timed_out",
    ),
    Case(
        "a call that still runs is asked for again",
        "RollcageCallsTurnedAway",
        {'rollcage_call_failures_total{tool="shell",cause="still_running"}': "0x10 1x20"},
        "12m",
    ),
    Case(
        "nothing became ready for twenty minutes",
        "RollcageRefillStalled",
        _pool(wanted="50x60", ready="20x60", refills="7x60"),
        "30m",
        ENVIRONMENT,
        "swe lacks 30 sandboxes and none has become ready in ten minutes",
    ),
    Case("slow is not stalled", "RollcageRefillStalled", _pool(wanted="50x60", ready="20x60", refills="0+1x60"), "30m"),
    Case(
        "as many are in use as there may be",
        "RollcageRefillStalled",
        _pool(wanted="50x60", ready="0x60", claimed="600x60"),
        "30m",
    ),
    Case("a full pool refills nothing", "RollcageRefillStalled", _pool(wanted="50x60", ready="50x60"), "30m"),
    Case(
        "the quota is reached",
        "RollcageStartFailures",
        {'rollcage_start_failures_total{environment="swe",reason="QuotaExceeded"}': "0+1x60"},
        "20m",
        {"environment": "swe", "reason": "QuotaExceeded"},
        "Sandboxes of swe do not start: QuotaExceeded",
    ),
    Case(
        "one start failed long ago",
        "RollcageStartFailures",
        {'rollcage_start_failures_total{environment="swe",reason="StartFailed"}': "0 1x60"},
        "20m",
    ),
    Case(
        "a call came to a stranger, the first ever",
        "RollcageMisroutes",
        {f"rollcage_misroutes_refused_total{SWE}": "0x10 1x20"},
        "15m",
        ENVIRONMENT,
        "Calls of swe came to a wrong sandbox and were refused",
    ),
    Case("no call did", "RollcageMisroutes", {f"rollcage_misroutes_refused_total{SWE}": "3x60"}, "15m"),
    Case(
        "every twentieth answer is lost",
        "RollcageMaybeDelivered",
        {
            f"rollcage_calls_maybe_delivered_total{SWE}": "0+5x60",
            'rollcage_calls_total{tool="shell",outcome="ok"}': "0+100x60",
        },
        "30m",
        {},
        "5% of the calls lost their answer on the way",
    ),
    Case(
        "one answer in a thousand is lost",
        "RollcageMaybeDelivered",
        {
            f"rollcage_calls_maybe_delivered_total{SWE}": "0+1x60",
            'rollcage_calls_total{tool="shell",outcome="ok"}': "0+1000x60",
        },
        "30m",
    ),
    Case(
        "one gateway of two does not reach Redis",
        "RollcageStoreDown",
        {'rollcage_store_up{instance="a"}': "1x60", 'rollcage_store_up{instance="b"}': "1x5 0x60"},
        "10m",
        {},
        "Redis does not answer some part of Rollcage: no new rollout can begin there",
    ),
    Case("Redis answers all", "RollcageStoreDown", {"rollcage_store_up": "1x60"}, "10m"),
    Case("Redis fails over in seconds", "RollcageStoreDown", {"rollcage_store_up": "1x5 0 1x60"}, "10m"),
    Case(
        "the certificate is good for ten days, as one of two has seen it",
        "RollcageCertificateExpiring",
        _certificates(a=10, b=80),
        "30m",
        {},
        "The certificate of Redis expires in 10d 0h 0m 0s",
    ),
    Case("a certificate that lasts", "RollcageCertificateExpiring", _certificates(a=15, b=80), "30m"),
    Case("a Redis without TLS", "RollcageCertificateExpiring", {EXPIRY: "0x60"}, "30m"),
    Case(
        "the certificate is good for two days",
        "RollcageCertificateLastDays",
        _certificates(a=2),
        "30m",
        {},
        "The certificate of Redis expires in 2d 0h 0m 0s: then nobody can connect to it any more",
    ),
    Case(
        "the certificate has expired",
        "RollcageCertificateLastDays",
        _certificates(a=-1 / 24 / 6),
        "30m",
        {},
        "The certificate of Redis expires in -10m 0s: then nobody can connect to it any more",
    ),
    Case("there is time until the next working day", "RollcageCertificateLastDays", _certificates(a=4), "30m"),
    Case("a Redis without TLS needs no certificate", "RollcageCertificateLastDays", {EXPIRY: "0x60"}, "30m"),
    Case(
        "a result found its rollout over",
        "RollcageRecordsDropped",
        {f"rollcage_records_dropped_total{SWE}": "0x10 2x20"},
        "20m",
        ENVIRONMENT,
        "Results of swe are missing from the record",
    ),
    Case("nothing was dropped", "RollcageRecordsDropped", {f"rollcage_records_dropped_total{SWE}": "2x60"}, "20m"),
    Case(
        "both controllers stand by",
        "RollcageNoLeader",
        {'rollcage_leader{pod="controller-a"}': "1x5 0x60", 'rollcage_leader{pod="controller-b"}': "0x60"},
        "10m",
        {},
        "No controller leads: pools are not refilled and deaths are not judged",
    ),
    Case(
        "the second took over",
        "RollcageNoLeader",
        {'rollcage_leader{pod="controller-a"}': "1x5 0x60", 'rollcage_leader{pod="controller-b"}': "0x6 1x60"},
        "10m",
    ),
    Case(
        "every controller is gone, and gateways never lead",
        "RollcageNoLeader",
        {'rollcage_leader{pod="controller"}': "1x5 _x60", 'rollcage_leader{pod="gateway"}': "0x60"},
        "15m",
        {},
        "No controller leads: pools are not refilled and deaths are not judged",
    ),
    Case(
        "only a controller is left",
        "RollcageNoGateway",
        {
            'rollcage_requests_total{pod="gateway",dialect="operations",status="2xx"}': "0+30x5 _x60",
            'rollcage_requests_total{pod="controller",dialect="operations",status="2xx"}': "0x60",
        },
        "20m",
        {},
        "No gateway answers: trainers reach nobody",
    ),
    Case(
        "no trainer calls, but the cluster asks",
        "RollcageNoGateway",
        {
            'rollcage_requests_total{dialect="operations",status="2xx"}': "0+30x60",
            'rollcage_requests_total{dialect="agent_rft",status="2xx"}': "0x60",
        },
        "20m",
    ),
    Case(
        "a sandbox refused the key",
        "RollcageKeyRefused",
        {'rollcage_infra_failures_total{environment="swe",cause="key_refused"}': "0x10 1x20"},
        "15m",
        ENVIRONMENT,
        "Sandboxes of swe refuse the key that the gateways sign with",
    ),
    Case(
        "other failures are no matter of keys",
        "RollcageKeyRefused",
        {'rollcage_infra_failures_total{environment="swe",cause="evicted"}': "0+5x60"},
        "15m",
    ),
    Case(
        "every tenth request fails",
        "RollcageGatewayErrors",
        {
            'rollcage_requests_total{dialect="agent_rft",status="5xx"}': "0+10x60",
            'rollcage_requests_total{dialect="agent_rft",status="2xx"}': "0+90x60",
        },
        "20m",
        {},
        "10% of the requests are answered with 5xx",
    ),
    Case(
        "a gateway that is not ready says so to the cluster",
        "RollcageGatewayErrors",
        {
            'rollcage_requests_total{dialect="operations",status="5xx"}': "0+10x60",
            'rollcage_requests_total{dialect="agent_rft",status="2xx"}': "0+90x60",
        },
        "20m",
    ),
    Case(
        "a grader crashes",
        "RollcageGradingRefused",
        {
            'rollcage_grades_total{environment="swe",outcome="grader_failed"}': "0+1x60",
            'rollcage_grades_total{environment="swe",outcome="scored"}': "0+9x60",
        },
        "30m",
        ENVIRONMENT,
        "10% of the scores asked for in swe are refused",
    ),
    Case(
        "masked rollouts are rightly refused a score",
        "RollcageGradingRefused",
        {
            'rollcage_grades_total{environment="swe",outcome="masked"}': "0+9x60",
            'rollcage_grades_total{environment="swe",outcome="scored"}': "0+9x60",
        },
        "30m",
    ),
    Case(
        "the archive refuses for ten minutes",
        "RollcageArchiveFailing",
        {'rollcage_archives_total{result="failed"}': "0+2x60"},
        "20m",
        {},
        "Ended rollouts cannot be written to the archive",
    ),
    Case(
        "one write failed and was repeated",
        "RollcageArchiveFailing",
        {'rollcage_archives_total{result="failed"}': "0 1x60", 'rollcage_archives_total{result="written"}': "0+9x60"},
        "20m",
    ),
    Case(
        "a tenants file that cannot be read",
        "RollcageTenantsRefused",
        {'rollcage_tenants_stale{pod="a"}': "0x10 1x200", 'rollcage_tenants_stale{pod="b"}': "0x200"},
        "3h",
        {},
        "The tenants file cannot be read: the one before stays in force, and no gateway can start",
    ),
    Case(
        "a tenants file that was mended",
        "RollcageTenantsRefused",
        {"rollcage_tenants_stale": "0x5 1x5 0x20"},
        "15m",
    ),
    Case(
        "nothing is scraped",
        "RollcageUnwatched",
        {"up": "1x60"},
        "10m",
        {},
        "Prometheus gets nothing from Rollcage, so no other of these alerts can fire",
    ),
    Case("something is scraped", "RollcageUnwatched", {"rollcage_store_up": "1x60"}, "10m"),
)
