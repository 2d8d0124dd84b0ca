"""Files with one mistake each. `#<` marks the line that the fault names; then its path and a part of its message."""

CHANNELS = """\
channels:
  a: {base_url: https://a.example/v1, protocols: [chat, responses], credentials: [{name: main, secret: aaaaaaaa}]}
  b: {base_url: https://b.example/v1, protocols: [messages], credentials: [{name: main, secret: bbbbbbbb}]}
"""
MODELS = CHANNELS + "models:\n"
KEYS = "keys:\n"


def channel(line: str, base_url: str = "https://a.example", protocols: str = "[chat]") -> str:
    """A file with one channel, and one more option in line 5."""
    head = f"channels:\n  a:\n    base_url: {base_url}\n    protocols: {protocols}\n"
    return f"{head}    {line} #<\n    credentials: [{{name: main, secret: aaaaaaaa}}]\n"


def url(text: str) -> str:
    return (
        f"channels:\n  a:\n    base_url: {text} #<\n    protocols: [chat]\n    credentials: [{{name: m, secret: s}}]\n"
    )


def credential(text: str) -> str:
    head = "channels:\n  a:\n    base_url: https://a.example\n    protocols: [chat]\n"
    return f"{head}    credentials:\n      - {text} #<\n"


def key(text: str) -> str:
    return f"keys:\n  - name: k\n    {text} #<\n    secret: ssssssss\n"


def model(text: str) -> str:
    return f"{MODELS}  m:\n    {text} #<\n    routes: [{{channel: a}}]\n"


BAD = [
    # the form of the file
    ("- a #<", "", "must be a mapping of options"),
    ("server: {\n]: #<", "", "not valid YAML"),
    ("\n\tserver: 1 #<", "", "not valid YAML"),
    ("server: {drain: 1s}\nserver: {} #<", "server", "stands twice; the first is in line 1"),
    ("stream:\n  stall: 1s\n  stall: 1s #<", "stall", "stands twice; the first is in line 2"),
    ("server: {}\n--- #<\nstate: {}", "", "a second document"),
    ("server:\n  drain: !!int 3 #<", "", "tags are not supported"),
    ("server: *gone #<", "", "no anchor of this name"),
    ("models:\n  *: {routes: []} #<", "", "begins with * needs quotes"),
    ("? [a] #<\n: b", "", "a key must be text"),
    ("stream:\n  <<: 5 #<", "<<", "takes a mapping"),
    # sections
    ("sever: {} #<", "sever", "unknown option (did you mean server?); allowed here: server, state"),
    ("plugins: {} #<", "plugins", "unknown option; allowed here: server"),
    ("owners: {} #<", "owners", "`owners` is not supported by this version"),
    ("server: 5 #<", "server", "must be a mapping of options"),
    ("stream: [] #<", "stream", "must be a mapping of options"),
    ("channels: [] #<", "channels", "must be a mapping of names to options"),
    ("models: x #<", "models", "must be a mapping of names to options"),
    ("keys: {} #<", "keys", "must be a list"),
    ("keys:\n  - dev #<", "keys[0]", "must be a mapping of options"),
    # server
    ("server: {workers: 2} #<", "server.workers", "`workers` is not supported by this version"),
    ("server:\n  lisen: a #<", "server.lisen", "did you mean listen?"),
    ("server:\n  listen: [] #<", "server.listen", "needs at least one item"),
    ("server:\n  listen: {a: b} #<", "server.listen", "must be a list"),
    ("server:\n  listen: #<", "server.listen", "has no value"),
    ("server:\n  listen: :8080 #<", "server.listen", "0.0.0.0:PORT"),
    ("server:\n  listen: 8080 #<", "server.listen", "must be host:port"),
    ("server:\n  listen: ::1:8080 #<", "server.listen", "stands in brackets"),
    ("server:\n  listen: '[::g]:80' #<", "server.listen", "no IPv6 address"),
    ("server:\n  listen: a b:80 #<", "server.listen", "neither an IPv4 address nor a host name"),
    ("server:\n  listen: 127.1:80 #<", "server.listen", "neither an IPv4 address nor a host name"),
    ("server:\n  listen: 127.0.0.1:65536 #<", "server.listen", "from 0 to 65535"),
    ("server:\n  listen: 127.0.0.1:http #<", "server.listen", "from 0 to 65535"),
    ("server:\n  listen: 'unix:' #<", "server.listen", "the path of a socket"),
    (f"server:\n  listen: unix:{'x' * 108} #<", "server.listen", "at most 107 bytes"),
    ("server:\n  listen:\n  - a:1\n  - a:1 #<", "server.listen[1]", "stands twice"),
    ("server:\n  listen:\n  - a:1\n  - [] #<", "server.listen[1]", "must not be a list"),
    ("server:\n  max_body: 64 #<", "server.max_body", "needs a unit: 64B, 64KiB"),
    ("server:\n  max_body: 64MB #<", "server.max_body", "powers of 1024"),
    ("server:\n  max_body: big #<", "server.max_body", "such as 64KiB"),
    ("server:\n  max_body: 0MiB #<", "server.max_body", "at least 1B"),
    ("server:\n  max_body: 1.5MiB #<", "server.max_body", "such as 64KiB"),
    ("server:\n  bodies: 1MiB #<", "server.bodies", "must not be smaller than max_body"),
    ("server:\n  drain: 10 #<", "server.drain", "needs a unit: 10ms, 10s, 10m or 10h"),
    ("server:\n  drain: never #<", "server.drain", "cannot be never"),
    ("server:\n  drain: -1s #<", "server.drain", "must be a duration"),
    ("server:\n  drain: 10 s #<", "server.drain", "must be a duration"),
    ("server:\n  drain: 1d #<", "server.drain", "must be a duration"),
    ("server:\n  drain: ~ #<", "server.drain", "has no value"),
    ("server:\n  drain: 9000h #<", "server.drain", "at most 8760h"),
    ("server:\n  head_timeout: 0s #<", "server.head_timeout", "at least 1ms"),
    ("server:\n  drain: {a: 1} #<", "server.drain", "must not be a mapping"),
    # state
    ("state: {database: sqlite} #<", "state.database", "not supported by this version"),
    ("state:\n  secret: abcdef #<", "state.secret", "must not stand in the file"),
    ("state:\n  secret: env:EMPTY #<", "state.secret", "EMPTY is empty"),
    ("state:\n  secret: env:SPACED #<", "state.secret", "32 bytes"),
    ("state:\n  directory: headrace.yaml #<", "state.directory", "no folder"),
    ("state:\n  directory: '' #<", "state.directory", "path of a folder"),
    # stream
    ("stream:\n  stall: 120 #<", "stream.stall", "needs a unit"),
    ("stream:\n  keepalive: never #<", "stream.keepalive", "cannot be never"),
    ("stream:\n  early_open: soon #<", "stream.early_open", "must be a duration"),
    ("stream:\n  commit: first_evnt #<", "stream.commit", "did you mean first_event?); allowed: first_event"),
    ("stream:\n  client_gone: [cancel] #<", "stream.client_gone", "must not be a list; it takes cancel or drain"),
    ("stream:\n  max_attempts: 0 #<", "stream.max_attempts", "from 1 to 20"),
    ("stream:\n  drain_streams: many #<", "stream.drain_streams", "a whole number"),
    ("stream:\n  keepalive_comment: 'é' #<", "stream.keepalive_comment", "ASCII"),
    ("stream:\n  keepalive_coment: x #<", "stream.keepalive_coment", "did you mean keepalive_comment?"),
    ("stream: #<\n  first_event: 5m\n", "stream", "first_event (300s) must not be larger than open (240s)"),
    ("stream: #<\n  reply: 2h\n", "stream", "reply (7200s) must not be larger than total"),
    ("stream: #<\n  stall: 300s\n", "stream", "stall (300s) must not be larger than stall_with_pings"),
    # channels
    ("channels:\n  a: #<", "channels.a.base_url", "is required"),
    ("channels:\n  'a b': {base_url: https://a.example, protocols: chat, credentials: [{name: m, secret: s}]} #<",
     "channels.?", "the name must be 1 to 64"),
    ("channels:\n  a: {protocols: chat, credentials: [{name: m, secret: s}]} #<", "channels.a.base_url", "is required"),
    (url("api.openai.com/v1"), "channels.a.base_url", "must begin with https://"),
    (url("ftp://a.example"), "channels.a.base_url", "must begin with https://"),
    (url("http://a.example"), "channels.a.base_url", "allow_http: true permits it"),
    (url("https://u:p@a.example"), "channels.a.base_url", "must not hold a user or password"),
    (url("https://a.example?x=1"), "channels.a.base_url", "must not have a query or fragment"),
    (url("'https://a.example/v1#x'"), "channels.a.base_url", "must not have a query or fragment"),
    (url("https:///v1"), "channels.a.base_url", "the host is missing"),
    (url("https://::1/v1"), "channels.a.base_url", "without brackets"),
    (url("https://[::1x]/v1"), "channels.a.base_url", "no IPv6 address"),
    (url("https://a_.-.example"), "channels.a.base_url", "neither an IPv4 address nor a host name"),
    (url("https://0x7f000001"), "channels.a.base_url", "neither an IPv4 address nor a host name"),
    (url("https://a.example:0"), "channels.a.base_url", "from 1 to 65535"),
    (url("https://a.example/v1/../x"), "channels.a.base_url", "the path must be plain"),
    (url("https://a.example//v1"), "channels.a.base_url", "the path must be plain"),
    (url("https://a.example/v 1"), "channels.a.base_url", "the path must be plain"),
    (url("https://a.example/%zz"), "channels.a.base_url", "the path must be plain"),
    (url("https://169.254.169.254/latest"), "channels.a.base_url", "link-local"),
    (url("https://[::ffff:169.254.169.254]"), "channels.a.base_url", "link-local"),
    (url("https://0.0.0.0"), "channels.a.base_url", "unspecified"),
    ("channels: {a: {base_url: https://a.example, credentials: [{name: m, secret: s}],\n"
     "  protocols: [chat, chats]}} #<",
     "channels.a.protocols[1]", "unknown protocol (did you mean chat?); allowed: chat, responses, responses_ws"),
    ("channels: {a: {base_url: https://a.example, credentials: [{name: m, secret: s}],\n  protocols: []}} #<",
     "channels.a.protocols", "needs at least one item"),
    ("channels: {a: {base_url: https://a.example, protocols: chat,\n  credentials: []}} #<",
     "channels.a.credentials", "needs at least one item"),
    ("channels: {a: {base_url: https://a.example, protocols: chat,\n  credentials: env:OPENAI_API_KEY}} #<",
     "channels.a.credentials", "must be a list"),
    ("channels: {a: {base_url: https://a.example, protocols: chat,\n  credentials: }} #<",
     "channels.a.credentials", "has no value"),
    ("channels: {a: {base_url: https://a.example, protocols: chat,\n  credentials: [env:OPENAI_API_KEY]}} #<",
     "channels.a.credentials[0]", "must be a mapping of options"),
    (credential("{name: m}"), "channels.a.credentials[0].secret", "is required"),
    (credential("{secret: s}"), "channels.a.credentials[0].name", "is required"),
    (credential("{name: m, secret: s, limits: {}}"), "channels.a.credentials[0].limits", "not supported"),
    (credential("{name: m, secret: s, wieght: 2}"), "channels.a.credentials[0].wieght", "did you mean weight?"),
    (credential("{name: m, secret: s, weight: 0}"), "channels.a.credentials[0].weight", "from 1 to 1000000"),
    (credential("{name: m, secret: env:UNSET}"), "channels.a.credentials[0].secret", "variable UNSET is not set"),
    (credential("{name: m, secret: env:EMPTY}"), "channels.a.credentials[0].secret", "variable EMPTY is empty"),
    (credential("{name: m, secret: env:SPACED}"), "channels.a.credentials[0].secret", "without spaces"),
    (credential("{name: m, secret: env:a-b}"), "channels.a.credentials[0].secret", "the name of an environment"),
    (credential("{name: m, secret: $OPENAI_API_KEY}"), "channels.a.credentials[0].secret", "write env:NAME"),
    (credential("{name: m, secret: ''}"), "channels.a.credentials[0].secret", "must not be empty"),
    (credential("{name: m, secret: }"), "channels.a.credentials[0].secret", "has no value"),
    (credential("{name: m, secret: {x}}"), "channels.a.credentials[0].secret", "must not be a mapping"),
    (credential('{name: m, secret: "a\\r\\nb"}'), "channels.a.credentials[0].secret", "visible ASCII"),
    (credential("{name: m, secret: file:gone.key}"), "channels.a.credentials[0].secret", "does not exist"),
    (credential("{name: m, secret: file:.}"), "channels.a.credentials[0].secret", "no regular file"),
    (credential("{name: m, secret: s}\n      - {name: m, secret: t}"), "channels.a.credentials[1].name", "twice"),
    (channel("priority: high"), "channels.a.priority", "a whole number"),
    (channel("auth: basic"), "channels.a.auth", "must be by_protocol, bearer, header:NAME or query:NAME"),
    (channel("auth: 'header:'"), "channels.a.auth", "must be by_protocol"),
    (channel("auth: 'header:a b'"), "channels.a.auth", "must be by_protocol"),
    (channel("auth: 'query:a&b'"), "channels.a.auth", "must be by_protocol"),
    (channel("headers: [a]"), "channels.a.headers", "must be a mapping"),
    (channel("headers: {'a b': c}"), "channels.a.headers.?", "a header's name must be"),
    (channel('headers: {x-a: "b\\r\\nc"}'), "channels.a.headers.x-a", "without control characters (CR, LF, NUL)"),
    (channel('headers: {x-a: "b\\0c"}'), "channels.a.headers.x-a", "without control characters (CR, LF, NUL)"),
    (channel("headers: {Authorization: c}"), "channels.a.headers.Authorization", "with auth: header:authorization"),
    (channel("auth: header:X-Own\n    headers: {x-own: c}"), "channels.a.headers.x-own", "holds a credential"),
    (channel("headers: {Content-Length: 5}"), "channels.a.headers.Content-Length", "belongs to the connection"),
    (channel("headers: {x-a: b, X-A: c}"), "channels.a.headers.X-A", "stands twice"),
    (channel("query: {key: c}"), "channels.a.query.key", "with auth: query:key"),
    (channel("query: {'': c}"), "channels.a.query.?", "needs a name"),
    (channel('query: {v: "a\\nb"}'), "channels.a.query.v", "as it stands in a URL"),
    (channel("query: {v: a&b}"), "channels.a.query.v", "as it stands in a URL"),
    (channel("query: {v: ä}"), "channels.a.query.v", "as it stands in a URL"),
    (channel("paths: {chat.completions: x}"), "channels.a.paths.chat.completions", "begins with /"),
    (channel("paths: {chat.completions: '/x/{other}'}"), "channels.a.paths.chat.completions", "begins with /"),
    (channel("paths: {'chat completions': /x}"), "channels.a.paths.?", "an operation's name"),
    (channel("connect: 10"), "channels.a.connect", "needs a unit"),
    (channel("connections: -1"), "channels.a.connections", "from 0 to 1000000"),
    (channel("allow_http: yes"), "channels.a.allow_http", "must be true or false"),
    (channel("ca: gone.pem"), "channels.a.ca", "cannot read file"),
    (channel("ca: headrace.yaml"), "channels.a.ca", "holds no certificates"),
    (channel("usage: injct"), "channels.a.usage", "did you mean inject?"),
    (channel("proxy: http://p"), "channels.a.proxy", "not supported by this version"),
    (channel("sk-secret text: x"), "channels.a.?", "unknown option"),
    # models
    (f"{MODELS}  m: {{}} #<", "models.m.routes", "is required"),
    (f"{MODELS}  m: {{routes: []}} #<", "models.m.routes", "needs at least one item"),
    (f"{MODELS}  m: {{routes: [a]}} #<", "models.m.routes[0]", "must be a mapping of options"),
    (f"{MODELS}  'a b': {{routes: [{{channel: a}}]}} #<", "models.?", "the name must be"),
    (f"{MODELS}  a*b*: {{routes: [{{channel: a}}]}} #<", "models.a*b*", "at most one *"),
    (f"{MODELS}  a?: {{routes: [{{channel: a}}]}} #<", "models.?", "without ? [ ]"),
    (f"{MODELS}  m: {{routes: [{{channel: aa}}]}} #<", "models.m.routes[0].channel",
     "no such channel (did you mean a?); there are: a, b"),
    (f"{MODELS}  m: {{routes: [{{channel: a}},\n    {{channel: a}}]}} #<", "models.m.routes[1]", "stands twice"),
    (f"{MODELS}  m*: {{routes: [{{channel: a, upstream_model: x}}]}} #<", "models.m*.routes[0].upstream_model",
     "sends the asked name up"),
    (f"{MODELS}  m: {{routes: [{{channel: a, upstream_model: x*}}]}} #<", "models.m.routes[0].upstream_model",
     "without *"),
    (model("protocols: [messages]"), "models.m.protocols[0]", "speaks messages; they speak: chat, responses"),
    (model("protocols: messages"), "models.m.protocols", "no route of the model speaks messages"),
    (model("max_output: 0"), "models.m.max_output", "from 1"),
    (model("stall: 5"), "models.m.stall", "needs a unit"),
    (model("price: {}"), "models.m.price", "`price` is not supported by this version"),
    (model("rutes: 5"), "models.m.rutes", "did you mean routes?"),
    (f"stream: {{open: 100s, first_event: 90s}}\n{MODELS}  m: #<\n    first_event: 110s\n    routes: [{{channel: a}}]",
     "models.m", "together with those of stream: first_event (110s) must not be larger than open (100s)"),
    # keys
    ("keys:\n  - secret: ssssssss #<", "keys[0].name", "is required"),
    ("keys:\n  - name: k #<", "keys[0].secret", "is required"),
    ("keys:\n  - name: k k #<\n    secret: s", "keys[0].name", "must be 1 to 64"),
    ("keys:\n  - {name: k, secret: s}\n  - {name: k, secret: t} #<", "keys[1].name", "keys[0] has the same name"),
    ("keys:\n  - {name: k, secret: s}\n  - {name: l, secret: s} #<", "keys[1].secret", "keys[0] has the same secret"),
    ("keys:\n  - {name: k, secret: env:UNSET} #<", "keys[0].secret", "variable UNSET is not set"),
    (key("budget: {amount: 5}"), "keys[0].budget", "not supported by this version"),
    (key("models: ['a b']"), "keys[0].models[0]", "a pattern with *"),
    (key("models: [gpt-?]"), "keys[0].models[0]", "without ? [ ]"),
    (key("expires: soon"), "keys[0].expires", "ISO date or time"),
    (key("expires: 2027-13-01"), "keys[0].expires", "ISO date or time"),
    (key("expires: 10"), "keys[0].expires", "ISO date or time"),
    (key("state: on"), "keys[0].state", "allowed: active, disabled"),
    (key("origins: [app.example]"), "keys[0].origins[0]", "scheme://host[:port]"),
    (key("origins: https://a.example/x"), "keys[0].origins", "scheme://host[:port]"),
    (key("keepalive: never"), "keys[0].keepalive", "cannot be never"),
    (key("stall: 10s"), "keys[0].stall", "unknown option"),
]  # fmt: skip
