#!/bin/sh
# Trains on palestra/whodunit with GRPO. Needs verl 0.9.1, `pip install 'palestra[verl]'` on every node, and GPUs.
# PALESTRA_URL and PALESTRA_API_KEY must be set before ray starts, because its workers take the variables from there.
set -eu
cd "$(dirname "$0")"
export PALESTRA_RUN="${PALESTRA_RUN:-verl-whodunit}"
palestra prepare-tasks --env palestra/whodunit --split train --format verl --out train.jsonl
palestra prepare-tasks --env palestra/whodunit --split validation --format verl --out validation.jsonl
python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=train.jsonl \
  data.val_files=validation.jsonl \
  data.train_batch_size=32 \
  data.max_prompt_length=4096 \
  data.max_response_length=8192 \
  actor_rollout_ref.model.path=Qwen/Qwen3-4B \
  actor_rollout_ref.actor.ppo_mini_batch_size=32 \
  actor_rollout_ref.actor.use_dynamic_bsz=true \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.multi_turn.format=hermes \
  actor_rollout_ref.rollout.agent.agent_loop_config_path=agent_loop.yaml \
  trainer.project_name=palestra \
  trainer.experiment_name="$PALESTRA_RUN"
