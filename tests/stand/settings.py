"""The stand's configuration: limits scaled to tests, and models by name pattern, each with what a kind of test needs.

`$CH1`, `$CH2`, … are the simulators' origins and `$STATE` the gateway's folder. A test takes a fresh model name of one
of the patterns (`Stand.model`), so it has scenarios, upstream records and entries of its own on a shared stand.
"""

CONFIG = """
server:
  listen: 127.0.0.1:0
  max_body: 1MiB
  drain_notice: 0s
  drain: 5s
state: {directory: $STATE}
stream:
  keepalive: 200ms
  first_event: 5s
  stall: 5s
  stall_with_pings: 10s
  open: 10s
  reply: 5s
  total: 30s
  end_grace: 300ms
  write_timeout: 5s
channels:
  ch1:
    base_url: $CH1/v1
    allow_http: true
    protocols: [chat]
    credentials: [{name: main, secret: sk-upstream-1}]
  ch2:
    base_url: $CH2/v1
    allow_http: true
    protocols: [chat]
    priority: 1
    credentials: [{name: main, secret: sk-upstream-2}]
  refusing:
    base_url: "http://127.0.0.1:9/v1"
    allow_http: true
    protocols: [chat]
    credentials: [{name: main, secret: sk-upstream-3}]
  not-tls:
    base_url: "https://127.0.0.1:$PORT1/v1"
    protocols: [chat]
    credentials: [{name: main, secret: sk-upstream-4}]
  estimating:
    base_url: $CH1/v1
    allow_http: true
    protocols: [chat]
    usage: estimate
    credentials: [{name: main, secret: sk-upstream-5}]
  with-responses:
    base_url: $CH1/v1
    allow_http: true
    protocols: [responses]
    credentials: [{name: main, secret: sk-upstream-6}]
models:
  # one channel; two, in order; three attempts on two
  one-*: {routes: [{channel: ch1}], max_attempts: 1}
  twice-*: {routes: [{channel: ch1}]}
  pair-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2}
  often-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 5}
  # one channel that cannot be reached before a good one
  refusing-*: {routes: [{channel: refusing}, {channel: ch2}]}
  not-tls-*: {routes: [{channel: not-tls}, {channel: ch2}]}
  # limits of their own: short ones, but with room for a busy machine between what a test expects and the next limit
  impatient-*:
    routes: [{channel: ch1}, {channel: ch2}]
    max_attempts: 2
    first_event: 500ms
    open: 3s
    stall: 600ms
    stall_with_pings: 1200ms
    reply: 600ms
    write_timeout: 500ms
  held-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2, commit: first_output, stall: 600ms}
  early-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2, early_open: 100ms, early_open_cold: 150ms}
  early-one-*: {routes: [{channel: ch1}], max_attempts: 1, early_open: 100ms, early_open_cold: 150ms}
  early-late-*:
    routes: [{channel: ch1}]
    max_attempts: 1
    early_open: 100ms
    early_open_cold: 150ms
    first_event: 400ms
  short-*:
    routes: [{channel: ch1}]
    total: 1500ms
    open: 800ms
    reply: 800ms
    first_event: 800ms
    stall: 800ms
    stall_with_pings: 800ms
  early-short-*:
    routes: [{channel: ch1}]
    total: 900ms
    open: 900ms
    early_open: 100ms
    early_open_cold: 150ms
    first_event: 900ms
    stall: 900ms
    stall_with_pings: 900ms
    reply: 900ms
  estimate-*: {routes: [{channel: estimating}], max_attempts: 1}
  # listed; one of them is not offered through chat
  exact: {routes: [{channel: ch1}]}
  renamed: {routes: [{channel: ch1, upstream_model: upstream-name}]}
  # two routes that lead to one credential
  twin: {routes: [{channel: ch1, upstream_model: twin-a}, {channel: ch1, upstream_model: twin-b}]}
  responses-only: {routes: [{channel: with-responses}]}
keys:
  - {name: dev, secret: sk-hr-test-0123456789abcdef}
  - {name: narrow, secret: sk-hr-narrow-0123456789abcdef, models: [exact, "one-*"]}
  - {name: expired, secret: sk-hr-expired-0123456789abcdef, expires: 2020-01-01T00:00:00Z}
  - {name: disabled, secret: sk-hr-disabled-0123456789abcdef, state: disabled}
  - {name: patient, secret: sk-hr-patient-0123456789abcdef, keepalive: 1h}
  - {name: brisk, secret: sk-hr-brisk-0123456789abcdef, keepalive: 50ms}
"""
