import type { EnvironmentThreshold, StepKey } from './rollup.sql.ts';
import type { StepPart } from './step-columns.ts';

type EnvironmentOfRun = Pick<EnvironmentThreshold, 'run_seq' | 'env_id'>;
const keyOf = ({ run_seq, env_id }: EnvironmentOfRun) => `${run_seq}:${env_id}`;
const isUnit = ({ reward }: StepPart) => reward.every((value) => Number.isNaN(value) || (value >= 0 && value <= 1));

/** Of environments of some runs, whether all rewards lie in [0, 1], on which it depends what success means (dashboard.md 14.3): as it was known, and as steps say that are read now. */
export class RewardScales {
  readonly #known: Map<string, EnvironmentThreshold>;
  readonly #seen = new Map<string, EnvironmentThreshold>();

  constructor(known: readonly EnvironmentThreshold[]) {
    this.#known = new Map(known.map((scale) => [keyOf(scale), scale]));
  }

  see({ run_seq }: StepKey, parts: readonly StepPart[]): void {
    for (const part of parts) {
      const own = { run_seq, env_id: part.env_id, unit_rewards: isUnit(part) };
      const before = this.#seen.get(keyOf(own))?.unit_rewards ?? true;
      this.#seen.set(keyOf(own), { ...own, unit_rewards: before && own.unit_rewards });
    }
  }

  /** As it was known; undefined = not known. */
  isUnit(run_seq: number, env_id: number): boolean | undefined {
    return this.#known.get(keyOf({ run_seq, env_id }))?.unit_rewards;
  }

  /** New environments, and those that were thought to have only rewards in [0, 1]. */
  changes(): EnvironmentThreshold[] {
    return [...this.#seen].flatMap(([key, scale]) => {
      const known = this.#known.get(key);
      return known === undefined || (known.unit_rewards && !scale.unit_rewards) ? [scale] : [];
    });
  }

  /** That had a reward outside of [0, 1] of which none was seen: it may be gone, with its rollout, or because it was only a part of a total. */
  doubtful(): EnvironmentThreshold[] {
    return [...this.#known].flatMap(([key, scale]) => (!scale.unit_rewards && (this.#seen.get(key)?.unit_rewards ?? true) ? [scale] : []));
  }

  /** From now on they are known as that. */
  learn(environments: readonly EnvironmentOfRun[], unit_rewards: boolean): void {
    for (const { run_seq, env_id } of environments) this.#known.set(keyOf({ run_seq, env_id }), { run_seq, env_id, unit_rewards });
  }
}
