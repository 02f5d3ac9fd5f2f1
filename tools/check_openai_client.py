"""Talks to a server of lone as OpenAI's Python client does, and checks what comes back.

usage: check_openai_client.py BASE_URL MODEL      (MODEL is tiny-lfm2 or tiny-lfm3)
"""

import json
import sys

import openai
from pydantic import BaseModel

BASE_URL, MODEL = sys.argv[1:]
client = openai.OpenAI(base_url=BASE_URL, api_key="none", max_retries=0, timeout=120)
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
PARIS = "The capital of France is Paris."
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "multiply", "description": "Multiply two numbers",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"]}}},
]


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def chat():
    answer = client.chat.completions.create(model=MODEL, messages=FRANCE)
    equal(answer.choices[0].message.content, PARIS)
    equal(answer.choices[0].finish_reason, "stop")
    equal(answer.usage.prompt_tokens + answer.usage.completion_tokens, answer.usage.total_tokens)


def chat_stream():
    stream = client.chat.completions.create(
        model=MODEL, messages=FRANCE, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), PARIS)
    assert chunks[-1].usage.completion_tokens > 1


def completions():
    answer = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, logprobs=2)
    equal("".join(answer.choices[0].logprobs.tokens), answer.choices[0].text)
    assert 1 <= answer.usage.completion_tokens <= 4
    streamed = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, stream=True)
    equal("".join(chunk.choices[0].text for chunk in streamed), answer.choices[0].text)


def logprobs():
    answer = client.chat.completions.create(model=MODEL, messages=FRANCE, logprobs=True, top_logprobs=3)
    entries = answer.choices[0].logprobs.content
    equal("".join(entry.token for entry in entries), PARIS)
    equal([len(entry.top_logprobs) for entry in entries], [3] * len(entries))


def use_tool(name, arguments):
    if name == "multiply":
        return {"product": arguments["a"] * arguments["b"]}
    return {"city": arguments["city"], "sky": "sunny", "degrees": 20}


def tool_round_trip(question, expected, stream):
    messages = [{"role": "user", "content": question}]
    if stream:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as events:
            message = events.get_final_completion().choices[0].message
    else:
        answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        equal(answer.choices[0].finish_reason, "tool_calls")
        message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = use_tool(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    for message in messages:
        for call in message.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        message.pop("parsed", None)
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    equal(answer.choices[0].message.content, expected)


def tools():
    for stream in (False, True):
        tool_round_trip("What is 549 times 506?", "549 times 506 is 277794.", stream)
        tool_round_trip("What is the weather in Tehran?", "It is 20 degrees and sunny in Tehran.", stream)


def forced_tool():
    choice = {"type": "function", "function": {"name": "multiply"}}
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "What is 12 times 13?"}], tools=TOOLS, tool_choice=choice)
    equal(json.loads(answer.choices[0].message.tool_calls[0].function.arguments), {"a": 12, "b": 13})


class Person(BaseModel):
    name: str
    age: int


def structured():
    question = [{"role": "user", "content": "Write JSON with name Linus and age 16."}]
    answer = client.chat.completions.parse(model=MODEL, messages=question, response_format=Person)
    equal(answer.choices[0].message.parsed, Person(name="Linus", age=16))
    response = client.responses.parse(model=MODEL, input=question, text_format=Person)
    equal(response.output_parsed, Person(name="Linus", age=16))


def responses():
    response = client.responses.create(model=MODEL, input="What is the capital of France?")
    equal((response.output_text, response.status), (PARIS, "completed"))
    with client.responses.stream(model=MODEL, input="What is the capital of France?") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        equal((text, stream.get_final_response().output_text), (PARIS, PARIS))


def errors():
    try:
        client.chat.completions.create(model=MODEL, messages=FRANCE, temperature=9)
    except openai.BadRequestError as error:
        equal((error.param, error.type), ("temperature", "invalid_request_error"))
    else:
        raise AssertionError("a temperature of 9 was accepted")
    try:
        client.chat.completions.create(model="gpt-9", messages=FRANCE)
    except openai.NotFoundError as error:
        equal(error.code, "model_not_found")
    else:
        raise AssertionError("another model was accepted")
    try:
        client.chat.completions.create(model=MODEL, messages=FRANCE, extra_body={"surprise": 1})
    except openai.BadRequestError as error:
        equal(error.param, "surprise")
    else:
        raise AssertionError("an unknown field was accepted")


def cancellation():
    stream = client.chat.completions.create(
        model=MODEL, messages=FRANCE, stream=True, logit_bias={"7": -100, "2": -100})
    for _, _ in zip(range(4), stream):
        pass
    stream.close()
    chat()


def models():
    equal([model.id for model in client.models.list()], [MODEL])
    equal(client.models.retrieve(MODEL).id, MODEL)


for check in (models, chat, chat_stream, completions, logprobs, tools, forced_tool, structured, responses, errors, cancellation):
    try:
        check()
    except Exception as error:
        sys.exit(f"{check.__name__}: {type(error).__name__}: {error}")
    print(f"{check.__name__}: as expected")
