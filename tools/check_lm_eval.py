"""Has lm-eval ask a running server the exam's questions, by chat and by text, and compares the marks with `lone eval`'s.

usage: check_lm_eval.py LONE URL MODEL_DIR      (lm_eval[api] from PyPI; the server serves the checkpoint in MODEL_DIR)
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

LONE, URL, MODEL = sys.argv[1], sys.argv[2].rstrip("/"), pathlib.Path(sys.argv[3])
HERE = pathlib.Path(__file__).resolve().parent
questions = [question for question in json.loads((MODEL / "exam.json").read_text())["questions"] if not question.get("tools")]
tasks = sorted({question["task"] for question in questions})


def post(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def marks_of_lm_eval(kind, prompt_of):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        lines = [json.dumps({"prompt": prompt_of(question), "answer": question["answer"]}) for question in questions]
        (directory / "exam.jsonl").write_text("\n".join(lines))
        task = (HERE / "lm_eval/exam.yaml").read_text().replace("exam.jsonl", str(directory / "exam.jsonl"))
        (directory / "exam.yaml").write_text(task)
        path = "chat/completions" if kind == "local-chat-completions" else "completions"
        arguments = f"model={MODEL.name},base_url={URL}/v1/{path},num_concurrent=1,tokenizer_backend=none"
        command = [sys.executable, "-m", "lm_eval", "run", "--model", kind, "--model_args", arguments, "--tasks", "lone_exam",
                   "--include_path", str(directory), "--output_path", str(directory / "out")]
        if kind == "local-chat-completions":
            command.append("--apply_chat_template")
        subprocess.run(command, check=True)
        results = json.loads(next((directory / "out").rglob("results*.json")).read_text())
        return results["results"]["lone_exam"]["exact_match,none"]


def marks_of_lone():
    command = [LONE, "eval", "--exam", MODEL / "exam.json", "--model", MODEL, "--tasks", ",".join(tasks), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def rendered(question):
    return post("/apply-template", {"messages": question["messages"]})["prompt"]


chat = marks_of_lm_eval("local-chat-completions", lambda question: question["messages"][-1]["content"])
text = marks_of_lm_eval("local-completions", rendered)
lone = marks_of_lone()
print(f"lm-eval: {chat} by chat, {text} by text; lone eval: {lone['total']}")
assert chat == text == lone["total"], "the marks differ"
