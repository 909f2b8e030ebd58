"""The draft: its arithmetic, its training, its files."""

import json
import subprocess
import sys

import eagle3
import hidden_states
import pytest
import torch
from conftest import TAPS, VERIFIER, script
from eagle3 import Eagle3, Shape
from safetensors.torch import load_file, save_file

training = script("04_train_draft")

PARAMS = {
    "verifier_name": "workspace/verifier",
    "steps": 12,
    "batch": 8,
    "lr": 2e-3,
    "ttt_steps": 3,
    "ttt_decay": 0.8,
    "proposed": 3,
    "log_every": 4,
    "seed": 0,
    "threads": 1,
}


def train(run, folder, **params):
    folder.mkdir()
    outputs = {name: folder / name for name in ("draft", "curve", "plot")}
    training.train([run.states], run.mapping, VERIFIER, **outputs, **PARAMS | params)
    return outputs


@pytest.fixture(scope="module")
def trained(run, tmp_path_factory):
    return train(run, tmp_path_factory.mktemp("draft") / "first")


@pytest.fixture(scope="module")
def verifier():
    return load_file(VERIFIER / "model.safetensors")


@pytest.fixture
def toy():
    torch.manual_seed(1)
    shape = Shape(16, 24, 4, 2, 4, 20, 64, 1e-6, 10000.0, 10)
    return Eagle3(shape, torch.arange(10), torch.arange(20) % 2 == 0).eval()


@torch.no_grad()
def test_chains_from_all_positions_are_each_chain_alone(toy):
    """Training runs every chain at once; decoding runs one. Both have to see the same keys."""
    ids, features = torch.randint(20, (1, 12)), torch.randn(1, 8, 16)
    positions = torch.arange(8)
    hidden, base = toy.decode(ids[:, 1:9], features, positions)
    steps, own = [hidden], []
    for step in (1, 2, 3):
        hidden, made = toy.chain(ids[:, 1 + step : 9 + step], hidden, positions + step, base, own)
        own.append(made)
        steps.append(hidden)
    for start in range(8):
        alone, past = toy.decode(ids[:, 1 : start + 2], features[:, : start + 1], positions[: start + 1])
        for step in range(4):
            if step:
                token = ids[:, start + 1 + step : start + 2 + step]
                alone, past = toy.decode(token, alone[:, -1:], torch.tensor([start + step]), past)
            torch.testing.assert_close(alone[:, -1], steps[step][:, start], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_draft_sees_no_later_position(toy):
    ids, features = torch.randint(20, (1, 8)), torch.randn(1, 8, 16)
    hidden, _ = toy.decode(ids, features, torch.arange(8))
    features[:, 5:] += 1
    later, _ = toy.decode(ids, features, torch.arange(8))
    assert torch.equal(hidden[:, :5], later[:, :5])
    assert not torch.allclose(hidden[:, 5:], later[:, 5:])


@torch.no_grad()
def test_the_layer_adds_to_the_feature_as_it_is(toy):
    """norm_before_residual = false: with its two output projections at zero, the layer passes features through."""
    toy.layers[0].self_attn.o_proj.weight.zero_()
    toy.layers[0].mlp.down_proj.weight.zero_()
    features = torch.randn(1, 5, 16)
    hidden, _ = toy.decode(torch.randint(20, (1, 5)), features, torch.arange(5))
    assert torch.equal(hidden, features)


def test_a_chain_step_is_taught_what_the_verifier_says_one_further(run):
    """At base position p, step i learns the verifier's choice at p + 1 + i, where that token was generated."""
    batch = training.collate(hidden_states.read(run.states)[:2])
    model = training._verifier(str(VERIFIER))
    teacher = training.Teacher(model.model.norm, model.lm_head.weight)
    everything = torch.ones(660, dtype=torch.bool)
    probabilities, sayable = teacher.targets(batch.last, everything)
    choices = probabilities.argmax(-1)
    assert sayable.all()
    for step in range(3):
        counted = training._ahead(batch.mask, 2 + step)
        said = training._ahead(batch.ids, 2 + step)[counted]
        # The replies were greedy, so what the verifier chooses at p + 1 + i is the token at p + 2 + i.
        assert torch.equal(training._ahead(choices, 1 + step)[counted], said)


def test_training_lowers_the_loss(trained):
    points = json.loads(trained["curve"].read_text())
    assert [point["step"] for point in points] == [4, 8, 12]
    assert points[-1]["loss"] < 0.9 * points[0]["loss"]
    assert all(len(point["agreement"]) == 3 for point in points)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(run, trained, tmp_path):
    again, other = train(run, tmp_path / "again"), train(run, tmp_path / "other", seed=1)
    for name in ("draft/model.safetensors", "draft/config.json", "curve", "plot"):
        first = trained["draft"].parent / name
        assert (tmp_path / "again" / name).read_bytes() == first.read_bytes()
    assert again["plot"].read_bytes().startswith(b"\x89PNG")
    weights = "model.safetensors"
    assert (other["draft"] / weights).read_bytes() != (trained["draft"] / weights).read_bytes()


def test_a_training_that_is_stopped_goes_on_to_the_same_bytes(run, trained, tmp_path, monkeypatch, capsys):
    (tmp_path / "scratch").mkdir()
    params = {"save_every": 3, "scratch": tmp_path / "scratch"}
    unroll, n_steps = training.unroll, []

    def stopped(*args):
        if len(n_steps) == 8:
            raise InterruptedError
        n_steps.append(None)
        return unroll(*args)

    monkeypatch.setattr(training, "unroll", stopped)
    with pytest.raises(InterruptedError):
        train(run, tmp_path / "stopped", **params)
    monkeypatch.undo()
    train(run, tmp_path / "again", **params)
    assert "goes on from step 6" in capsys.readouterr().out
    for name in ("draft/model.safetensors", "draft/config.json", "curve", "plot"):
        assert (tmp_path / "again" / name).read_bytes() == (trained["draft"].parent / name).read_bytes()


@pytest.mark.timeout(180)
def test_two_processes_train_the_draft_that_one_trains(run, trained, tmp_path):
    outputs = {name: tmp_path / name for name in ("draft", "curve", "plot")}
    given = {"hidden_states": run.states, "mapping": run.mapping, "verifier": VERIFIER, **outputs, **PARAMS}
    options = [str(word) for name, value in given.items() for word in (f"--{name}", value)]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*launcher, training.__file__, *options], check=True, capture_output=True)
    one, two = (json.loads(curve.read_text()) for curve in (trained["curve"], outputs["curve"]))
    assert [point["step"] for point in two] == [4, 8, 12]
    for ours, theirs in zip(one, two, strict=True):
        assert theirs["loss"] == pytest.approx(ours["loss"], rel=0.05)
        assert theirs["agreement"] == pytest.approx(ours["agreement"], abs=0.02)


def test_the_files_have_the_speculators_format(trained):
    tensors = load_file(trained["draft"] / "model.safetensors")
    layer = "layers.0."
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == {
        "d2t": (320,),
        "t2d": (660,),
        "embed_tokens.weight": (660, 128),
        "fc.weight": (128, 384),
        "norm.weight": (128,),
        "lm_head.weight": (320, 128),
        layer + "input_layernorm.weight": (128,),
        layer + "hidden_norm.weight": (128,),
        layer + "post_attention_layernorm.weight": (128,),
        layer + "self_attn.q_proj.weight": (128, 256),
        layer + "self_attn.k_proj.weight": (64, 256),
        layer + "self_attn.v_proj.weight": (64, 256),
        layer + "self_attn.o_proj.weight": (128, 128),
        layer + "mlp.gate_proj.weight": (384, 128),
        layer + "mlp.up_proj.weight": (384, 128),
        layer + "mlp.down_proj.weight": (128, 384),
    }
    config = json.loads((trained["draft"] / "config.json").read_text())
    assert config["norm_before_residual"] is False
    assert config["eagle_aux_hidden_state_layer_ids"] == TAPS
    assert config["speculators_config"]["verifier"] == {
        "name_or_path": "workspace/verifier",
        "architectures": ["LlamaForCausalLM"],
    }


def test_embeddings_stay_the_verifiers_and_the_rest_is_trained(run, trained, verifier):
    tensors, mapping = load_file(trained["draft"] / "model.safetensors"), load_file(run.mapping)
    embeddings = verifier["model.embed_tokens.weight"]
    assert torch.equal(tensors["embed_tokens.weight"], embeddings)
    assert torch.equal(tensors["d2t"], mapping["d2t"])
    head = embeddings[mapping["t2d"]]
    assert not torch.equal(tensors["lm_head.weight"], head)


def test_a_saved_draft_loads_as_it_was(trained, tmp_path):
    draft = eagle3.load(trained["draft"])
    eagle3.save(tmp_path / "copy", draft, "workspace/verifier", "LlamaForCausalLM", TAPS, 3)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "copy" / name).read_bytes() == (trained["draft"] / name).read_bytes()


def test_a_missing_tensor_is_an_error(trained, tmp_path):
    draft = eagle3.load(trained["draft"])
    eagle3.save(tmp_path / "broken", draft, "workspace/verifier", "LlamaForCausalLM", TAPS, 3)
    tensors = load_file(tmp_path / "broken/model.safetensors")
    del tensors["fc.weight"]
    save_file(tensors, tmp_path / "broken/model.safetensors")
    with pytest.raises(RuntimeError, match=r"fc\.weight"):
        eagle3.load(tmp_path / "broken")


def test_shards_of_different_taps_are_refused(run, tmp_path):
    other = tmp_path / "other"
    states = script("02_extract_hidden_states")
    states.extract(run.tokens, VERIFIER, other, taps=[0, 2, 3], dtype="float32", threads=1)
    with pytest.raises(ValueError, match="different verifiers, taps or dtypes"):
        training._records([run.states, other])
