/** How to upload from each trainer, for the code that each of them ships. */
export interface TrainerSnippet {
  id: string;
  name: string;
  /** What the trainer uploads without changes. */
  about: string;
  language: 'sh' | 'python';
  text: string;
}

const plain = `from openreward import OpenReward, ToolCall, ToolResult, UserMessage

client = OpenReward()
environment = client.environments.get("palestra/math")
rollout = client.rollout.create(
    run_name="first-run", rollout_name="math-0", environment="palestra/math", split="train",
    metadata={"step": 0, "group_id": "math-train-0", "sample_idx": 0, "n_samples": 1})

with environment.session(split="train", index=0) as session:
    rollout.log(UserMessage(session.get_prompt()[0].text))
    rollout.log(ToolCall(name="submit", content='{"answer": "1191"}', call_id="1"))
    output = session.call_tool("submit", {"answer": "1191"})
    rollout.log(ToolResult(output.blocks[0].text, call_id="1"),
                reward=output.reward, is_finished=output.finished)

client.rollout.close()`;

const skyrl = `export OPENREWARD_UPLOAD_ROLLOUT=true
export OPENREWARD_RUN_NAME=my-skyrl-run
python examples/train_integrations/openreward/prepare_tasks.py \\
  --env palestra/whodunit --split train --output tasks.parquet
# Start ray from this shell, so that its workers inherit the three addresses.
bash examples/train_integrations/openreward/run_openreward.sh`;

const cookbook = (run: string) => `# In the shell that starts ray; generate.py of the openreward cookbook
# uploads each episode when it ends, under the run name "${run}".
ray start --head
`;

const trl = `from openreward import AssistantMessage, OpenReward, UserMessage

client = OpenReward()

def reward(prompts, completions, trainer_state, **columns):
    rewards = score(prompts, completions)          # your own rewards
    for i, (prompt, completion, r) in enumerate(zip(prompts, completions, rewards)):
        rollout = client.rollout.create(
            run_name="my-trl-run", environment="me/math", split="train",
            metadata={"step": trainer_state.global_step,
                      "group_id": f"{trainer_state.global_step}-{prompt}", "phase": "train"})
        rollout.log(UserMessage(str(prompt)))
        rollout.log(AssistantMessage(str(completion)), reward=r, is_finished=True)
    return rewards`;

const verl = `# reward.py; pass custom_reward_function.path=reward.py custom_reward_function.name=compute_score
from openreward import AssistantMessage, OpenReward, UserMessage

client = OpenReward()

def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    r = score(solution_str, ground_truth)          # your own reward
    rollout = client.rollout.create(
        run_name="my-verl-run", environment=data_source, split=(extra_info or {}).get("split"),
        rollout_name=f"{data_source}-{(extra_info or {}).get('index')}")
    rollout.log(UserMessage(str((extra_info or {}).get("question", ""))))
    rollout.log(AssistantMessage(solution_str), reward=r, is_finished=True)
    return r`;

const primeRl = `# verifiers saves the results of an evaluation or a run. Importing a file again changes nothing.
npm run palestra -- import results.jsonl --format verifiers --run my-prime-run`;

export const snippets: readonly TrainerSnippet[] = [
  {
    id: 'sdk',
    name: 'Plain SDK',
    about: 'One rollout with all fields that the pages use. It uploads step, group and sample, so Palestra infers nothing.',
    language: 'python',
    text: plain,
  },
  {
    id: 'skyrl',
    name: 'SkyRL',
    about:
      'Its openreward integration uploads without changes. It sends no step, so Palestra infers steps from the order of arrival and marks them as inferred.',
    language: 'sh',
    text: skyrl,
  },
  {
    id: 'slime',
    name: 'slime',
    about: 'The generate.py of the cookbook uploads once the variables above are set. It sends no step, so Palestra infers steps.',
    language: 'sh',
    text: cookbook('slime-training'),
  },
  {
    id: 'miles',
    name: 'miles',
    about: 'Like slime: the same generate.py with another run name.',
    language: 'sh',
    text: cookbook('miles-training'),
  },
  {
    id: 'tinker',
    name: 'tinker',
    about: 'The recipe of the openreward cookbook uploads step and sample. It does not send failed and timed-out episodes.',
    language: 'sh',
    text: `# Only the variables above are needed: the config of the recipe names the run.\nexport TINKER_API_KEY=…`,
  },
  {
    id: 'verl',
    name: 'verl',
    about: 'Uploads nothing by default. A reward function does not know the step. Without a step in the metadata, Palestra infers steps.',
    language: 'python',
    text: verl,
  },
  {
    id: 'trl',
    name: 'TRL',
    about: 'Uploads nothing by default. Log from a reward function of GRPOTrainer.',
    language: 'python',
    text: trl,
  },
  {
    id: 'prime-rl',
    name: 'prime-rl',
    about: 'Uploads nothing by default. Import a file that verifiers saved, or log as with the plain SDK.',
    language: 'sh',
    text: primeRl,
  },
];
