#!/bin/sh
# GRPO with SkyRL 0.4 on palestra/whodunit. Needs a GPU, `pip install 'skyrl[fsdp]==0.4.0' 'palestra[skyrl]'`, and the three variables of
# docs/trainers/README.md. Other settings are SkyRL's, on the same command line.
set -eu
palestra prepare-tasks --env palestra/whodunit --split train --format skyrl --out train.parquet
python -m skyrl.train.entrypoints.main_base \
  trainer.override_entrypoint=palestra.skyrl_main \
  data.train_data='["train.parquet"]' \
  data.val_data='["train.parquet"]' \
  trainer.algorithm.advantage_estimator=grpo \
  trainer.policy.model.path=Qwen/Qwen2.5-1.5B-Instruct \
  trainer.placement.policy_num_gpus_per_node=1 \
  trainer.placement.ref_num_gpus_per_node=1 \
  trainer.train_batch_size=16 \
  trainer.policy_mini_batch_size=16 \
  trainer.max_prompt_length=2048 \
  generator.inference_engine.num_engines=1 \
  generator.n_samples_per_prompt=4 \
  generator.max_turns=10 \
  generator.max_input_length=8192 \
  generator.sampling_params.max_generate_length=512 \
  generator.sampling_params.stop='["</tool_call>"]' \
  environment.env_class=openreward
