"""nginx with a configuration equal in duty: one worker, event streams passed through, the credential replaced."""

import os
import shutil
from pathlib import Path

from bench.load import wire
from bench.load.gateway import Launch, Upstream
from bench.load.protocols import PROTOCOLS

_CONFIG = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid {directory}/nginx.pid;
error_log {directory}/error.log warn;
{user}
events {{ worker_connections {files}; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    keepalive_timeout 75s;
    keepalive_requests 1000000000;
    client_max_body_size 64m;
    upstream provider {{
        server 127.0.0.1:{upstream_port};
        keepalive 1024;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /readyz {{ return 200; }}
        proxy_http_version 1.1;
        proxy_buffering off;
        proxy_read_timeout 600s;
        {tls}
        {locations}
    }}
}}
"""

_LOCATION = """
        location {path} {{
            proxy_pass {scheme}://provider;
            proxy_set_header Connection "";
            proxy_set_header {credential} "{secret}";
        }}"""

_TLS = """proxy_ssl_trusted_certificate {ca};
        proxy_ssl_verify on;
        proxy_ssl_name localhost;
        proxy_ssl_server_name on;
        proxy_ssl_protocols TLSv1.2 TLSv1.3;"""


def launch(upstream: Upstream, directory: Path, port: int) -> Launch:
    """Write the configuration; the master runs in the foreground and has one worker."""
    scheme = upstream.origin.partition(":")[0]
    locations = [
        _LOCATION.format(
            path=protocol.target.partition("?")[0],
            scheme=scheme,
            credential=protocol.credential,
            secret=protocol.secret(wire.UPSTREAM_SECRET),
        )
        for protocol in PROTOCOLS.values()
    ]
    config = _CONFIG.format(
        directory=directory,
        files=20000,
        user="user root;" if os.geteuid() == 0 else "",
        port=port,
        upstream_port=upstream.port,
        locations="".join(locations),
        tls=_TLS.format(ca=upstream.ca) if upstream.ca else "",
    )
    path = directory / "nginx.conf"
    path.write_text(config)
    return Launch([shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(directory), "-c", str(path)])
