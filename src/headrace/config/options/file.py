"""The whole file: its sections."""

from pydantic import Field

from headrace.config.options.group import Options
from headrace.config.options.objects import ChannelOptions, KeyOptions, ModelOptions, OwnerOptions
from headrace.config.options.settings import ServerOptions, StateOptions, StreamOptions
from headrace.config.options.spending import WaitOptions


class FileOptions(Options):
    """The whole file."""

    server: ServerOptions = Field(default=ServerOptions(), description=str(ServerOptions.__doc__))
    state: StateOptions = Field(default=StateOptions(), description=str(StateOptions.__doc__))
    stream: StreamOptions = Field(default=StreamOptions(), description=str(StreamOptions.__doc__))
    limits: WaitOptions = Field(default=WaitOptions(), description=str(WaitOptions.__doc__))
    channels: dict[str, ChannelOptions] = Field(default={}, description=str(ChannelOptions.__doc__))
    models: dict[str, ModelOptions] = Field(default={}, description=str(ModelOptions.__doc__))
    keys: tuple[KeyOptions, ...] = Field(default=(), description=str(KeyOptions.__doc__))
    owners: tuple[OwnerOptions, ...] = Field(default=(), description=str(OwnerOptions.__doc__))
