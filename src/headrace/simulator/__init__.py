"""The scripted upstream: an LLM API with real wire bytes, pacing and faults, for tests, the demo and the bench.

what is said              scenario, answer
how a protocol spells it  chat, chat_objects, embeddings, listing, errors, spelling
how it is played          timeline, reply, player
how it is chosen          script, default.yaml, reading, delivery, fields, request, responder
the server                engine, connection, inbound, serving, thread
what it saw               recorded, recorder
"""

from headrace.simulator.engine import Simulator
from headrace.simulator.fields import ScriptError
from headrace.simulator.recorded import End, Recorded, Truth
from headrace.simulator.scenario import Scenario
from headrace.simulator.script import Script
from headrace.simulator.serving import serve
from headrace.simulator.thread import SimulatorThread

__all__ = ["End", "Recorded", "Scenario", "Script", "ScriptError", "Simulator", "SimulatorThread", "Truth", "serve"]
