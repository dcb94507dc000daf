#!/bin/sh
# GRPO (group_norm) with OpenRLHF 0.11 on palestra/whodunit. Needs GPUs, `pip install 'openrlhf[vllm]==0.11.2' 'palestra[openrlhf]'`, and the
# three variables of docs/trainers/README.md. Other settings are OpenRLHF's, on the same command line.
set -eu
palestra prepare-tasks --env palestra/whodunit --split train --format openrlhf --out train.jsonl
python -m openrlhf.cli.train_ppo_ray \
  --train.agent_func_path agent.py \
  --data.prompt_dataset train.jsonl \
  --data.input_key input \
  --data.label_key label \
  --data.apply_chat_template \
  --data.max_len 8192 \
  --actor.model_name_or_path Qwen/Qwen2.5-1.5B-Instruct \
  --actor.num_gpus_per_node 1 \
  --vllm.num_engines 1 \
  --algo.advantage.estimator group_norm \
  --rollout.batch_size 16 \
  --rollout.n_samples_per_prompt 4 \
  --train.batch_size 64
