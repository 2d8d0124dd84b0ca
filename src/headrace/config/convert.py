"""Turns validated options into the values that a worker works with."""

from dataclasses import replace

from headrace.config.forms import Reading
from headrace.config.options import (
    ChannelOptions,
    KeyOptions,
    ModelOptions,
    ServerOptions,
    StateOptions,
    StreamOptions,
)
from headrace.model.channel import Channel, Credential, Model, Route
from headrace.model.key import Key, StreamOverrides
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
        StateSettings(str(reading.path(state.directory)), state.secret),
        stream_from_options(stream, StreamSettings()),
    )


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
        credentials=tuple(Credential(one.name, one.secret.text, one.weight) for one in options.credentials),
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
    )


def model_from_options(name: str, options: ModelOptions, stream: StreamSettings) -> Model:
    """One model; `stream` is the file's own section, which the model's options go over."""
    return Model(
        name=name,
        routes=tuple(Route(one.channel, one.upstream_model, one.priority, one.weight) for one in options.routes),
        protocols=frozenset(options.protocols) or None,
        max_output=options.max_output,
        stream=stream_from_options(options, stream),
    )


def key_from_options(options: KeyOptions) -> Key:
    """One key, without its digest: that needs the gateway's secret."""
    return Key(
        name=options.name,
        digest=b"",
        owner=options.owner,
        models=options.models,
        expires=options.expires,
        state=options.state,
        origins=options.origins,
        overrides=_overrides(options),
    )


def _overrides(options: KeyOptions) -> StreamOverrides:
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
