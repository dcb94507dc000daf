#!/usr/bin/env bash
# GRPO on a hosted environment with miles: in its repository, with `pip install palestra`. MODEL_ARGS are those of the model's script.
set -euo pipefail
export PALESTRA_RUN=whodunit PALESTRA_MAX_TURNS=10
# miles-rl 0.0.2 has agent functions only with this; later versions always do.
export MILES_EXPERIMENTAL_ROLLOUT_REFACTOR=1
palestra prepare-tasks --env palestra/whodunit --format miles --out tasks.jsonl

python3 train.py "${MODEL_ARGS[@]}" \
  --hf-checkpoint "$MODEL" --ref-load "$MODEL" --advantage-estimator grpo \
  --prompt-data tasks.jsonl --input-key prompt --metadata-key metadata \
  --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 --rollout-max-response-len 4096 --rollout-temperature 1 \
  --custom-generate-function-path miles.rollout.generate_hub.agentic_tool_call.generate --use-session-server \
  --custom-agent-function-path palestra.miles.run \
  --custom-rm-path palestra.miles.reward \
  --custom-reward-post-process-path palestra.miles.post_process_rewards \
  --custom-rollout-log-function-path palestra.miles.log_rollouts \
  --custom-eval-rollout-log-function-path palestra.miles.log_evaluation
