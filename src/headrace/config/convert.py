"""Turns validated options into the values that a worker works with."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.config.forms import Reading
from headrace.config.options.objects import (
    ChannelOptions,
    CommonKeyOptions,
    CredentialOptions,
    ModelOptions,
    OwnerOptions,
    RouteOptions,
)
from headrace.config.options.settings import ServerOptions, StateOptions, StreamOptions
from headrace.config.options.spending import (
    BudgetOptions,
    LimitOptions,
    LongContextOptions,
    PriceOptions,
    RateOptions,
    WaitOptions,
)
from headrace.model.channel import Channel, Credential, Model, Route
from headrace.model.key import Key, StreamOverrides
from headrace.model.limits import NO_LIMITS, Budget, Limits
from headrace.model.owner import Owner
from headrace.model.price import LongContext, Price, Rates
from headrace.model.settings import ServerSettings, Settings, StateSettings, StreamSettings, TlsFiles


def settings_from_options(
    server: ServerOptions, state: StateOptions, stream: StreamOptions, reading: Reading
) -> Settings:
    """All settings; the state's folder becomes a path that does not depend on the working directory."""
    return Settings(
        ServerSettings(
            **{name: getattr(server, name) for name in ServerOptions.model_fields if name not in {"cors", "tls"}},
            tls=TlsFiles(server.tls.cert, server.tls.key) if server.tls.cert else None,
            cors_origins=server.cors.origins,
        ),
        state_from_options(state, reading),
        stream_from_options(stream, StreamSettings()),
    )


def state_from_options(state: StateOptions, reading: Reading) -> StateSettings:
    """The section `state`, its folder as a path that does not depend on the working directory."""
    given = {name: getattr(state, name) for name in StateOptions.model_fields}
    return StateSettings(**{**given, "directory": str(reading.path(state.directory))})


def stream_from_options(options: StreamOptions, under: StreamSettings) -> StreamSettings:
    """`under` with what `options` sets."""
    names = options.model_fields_set & StreamOptions.model_fields.keys()
    return replace(under, **{name: getattr(options, name) for name in names})


def channel_from_options(name: str, options: ChannelOptions) -> Channel:
    """One channel."""
    return Channel(
        name=name,
        base_url=options.base_url,
        protocols=frozenset(options.protocols),
        credentials=tuple(map(_credential, options.credentials)),
        priority=options.priority,
        auth=options.auth,
        headers=tuple(options.headers.items()),
        query=tuple(options.query.items()),
        paths=tuple(options.paths.items()),
        connect=options.connect,
        connections=options.connections,
        idle=options.idle,
        proxy=options.proxy,
        allow_http=options.allow_http,
        ca=options.ca,
        usage=options.usage,
        expose_limits=options.expose_limits,
        home=options.home,
        bind_ttl=options.bind_ttl,
    )


def _credential(options: CredentialOptions) -> Credential:
    return Credential(options.name, options.secret.text, options.weight, limits_from_options(options.limits, NO_LIMITS))


def model_from_options(name: str, options: ModelOptions, stream: StreamSettings) -> Model:
    """One model; `stream` is the file's own section, which the model's options go over."""
    return Model(
        name=name,
        routes=tuple(map(_route, options.routes)),
        protocols=frozenset(options.protocols) or None,
        max_output=options.max_output,
        stream=stream_from_options(options, stream),
        prices=prices_from_options(options.price),
        websocket_bridge=options.websocket_bridge,
    )


def _route(options: RouteOptions) -> Route:
    prices = prices_from_options(options.price)
    return Route(options.channel, options.upstream_model, options.priority, options.weight, prices)


def prices_from_options(options: Sequence[PriceOptions]) -> tuple[Price, ...]:
    """Prices that have passed the checks, in the order of their beginnings."""
    return tuple(sorted(map(_price, options), key=lambda price: float("-inf") if price.since is None else price.since))


def _price(options: PriceOptions) -> Price:
    long = options.long_context
    return Price(
        rates=rates_from_options(options),
        tiers=tuple((name.lower(), rates_from_options(tier)) for name, tier in options.tiers.items()),
        long_context=long_context_from_options(long) if long else None,
        since=options.since,
    )


def rates_from_options(options: RateOptions) -> Rates:
    """The rates of a price, or of one of its tiers."""
    mappings = {"cache_write", "calls"}
    plain = {name: getattr(options, name) for name in RateOptions.model_fields if name not in mappings}
    return Rates(**plain, cache_write=tuple(options.cache_write.items()), calls=tuple(options.calls.items()))


def long_context_from_options(options: LongContextOptions) -> LongContext:
    """What a long input makes of all rates."""
    return LongContext(options.above, tuple(options.factors.items()))


def key_from_options(options: CommonKeyOptions, under: Limits) -> Key:
    """One key, without its digest: that needs the gateway's secret. `under` has the waits of the section `limits`."""
    return Key(
        name=options.name,
        digest=b"",
        owner=options.owner,
        models=options.models,
        expires=options.expires,
        state=options.state,
        origins=options.origins,
        overrides=_overrides(options),
        limits=limits_from_options(options.limits, under),
        budget=_budget(options.budget),
        multiplier=options.multiplier,
        labels=tuple(options.labels.items()),
        ips=options.ips,
    )


def owner_from_options(options: OwnerOptions, under: Limits) -> Owner:
    """One owner. `under` has the waits of the section `limits`."""
    limits = limits_from_options(options.limits, under)
    return Owner(options.name, limits, _budget(options.budget), options.multiplier)


def limits_from_options(options: LimitOptions | WaitOptions, under: Limits) -> Limits:
    """`under` with what `options` sets."""
    return replace(under, **{name: getattr(options, name) for name in options.model_fields_set})


def _budget(options: BudgetOptions | None) -> Budget | None:
    return Budget(options.amount, options.window, options.exceeded, options.status) if options else None


def _overrides(options: CommonKeyOptions) -> StreamOverrides:
    given = options.model_fields_set
    cold = options.early_open_cold if "early_open_cold" in given else None
    warm = options.early_open if "early_open" in given else None
    return StreamOverrides(
        keepalive=options.keepalive if "keepalive" in given else None,
        early_open=warm,
        early_open_never="early_open" in given and warm is None,
        early_open_cold=cold,
        early_open_cold_never="early_open_cold" in given and cold is None,
    )
