import {
  type ColumnSums,
  FAILED,
  isFailed,
  isSuccess,
  isTruncated,
  mergeColumnSums,
  STOP_KNOWN,
  SUCCEEDS,
  type SuccessRule,
  sumColumns,
  TRUNCATED,
} from '@palestra/metrics';
import { STOP_REASONS } from '@palestra/protocol';
import { wordOf } from '../../codes.ts';
import { NO_FAILURE, NO_STOP, type StepPart, type StepTotals, together, totalsTogether } from './step-columns.ts';

/** What rollups of some rollouts are made of. */
export interface Sums {
  columns: ColumnSums;
  totals: StepTotals;
  /** Rollouts that have a failure class. */
  failures: number;
  /** Rollouts by code of their stop. */
  stops: Uint32Array;
  /** By number of the group the size that it should have; -1 = not known. */
  groupSizes: Int32Array;
}

interface Part {
  flags: Uint8Array;
  sums: Sums;
}

/** Sums of parts of one step, alone and together: rollouts of each are read once, unless one of the groups has some in several parts. */
export class PartSums {
  readonly #parts: ReadonlyMap<StepPart, Part>;

  constructor(parts: readonly StepPart[], ruleOf: (envId: number) => SuccessRule) {
    this.#parts = new Map(
      parts.map((part) => {
        const flags = judge(part, ruleOf(part.env_id));
        return [part, { flags, sums: sumPart(part, flags) }];
      }),
    );
  }

  of(parts: readonly StepPart[]): Sums {
    const own = parts.map((part) => this.#parts.get(part)!);
    if (own.length === 1) return own[0]!.sums;
    const each = own.map(({ sums }) => sums);
    const columns = mergeColumnSums(each.map((sums) => sums.columns));
    if (columns === null) return sumPart(together(parts), concatenated(own.map(({ flags }) => flags)));
    return {
      columns,
      totals: totalsTogether(each.map((sums) => sums.totals)),
      failures: each.reduce((sum, { failures }) => sum + failures, 0),
      stops: each[0]!.stops.map((_, code) => each.reduce((sum, { stops }) => sum + stops[code]!, 0)),
      groupSizes: each[0]!.groupSizes.map((_, of) => Math.max(...each.map(({ groupSizes }) => groupSizes[of]!))),
    };
  }
}

const FLAGS_OF_STOP = Uint8Array.from({ length: NO_STOP + 1 }, (_, code) => {
  const stop = wordOf(STOP_REASONS, code);
  if (stop === null || stop === 'unknown') return 0;
  return STOP_KNOWN | (isTruncated({ stop }) ? TRUNCATED : 0) | (isFailed({ stop, failure: null }) ? FAILED : 0);
});

/** Of each rollout what it counts for in figures of success, failure and stops. */
function judge({ reward, stop, failure }: StepPart, rule: SuccessRule): Uint8Array {
  const flags = new Uint8Array(reward.length);
  for (let at = 0; at < flags.length; at += 1) {
    let flag = FLAGS_OF_STOP[stop[at]!]!;
    if (failure[at] !== NO_FAILURE) flag |= FAILED;
    if (isSuccess(reward[at]!, rule)) flag |= SUCCEEDS;
    flags[at] = flag;
  }
  return flags;
}

function sumPart(part: StepPart, flags: Uint8Array): Sums {
  const groups = part.groupKeys.length;
  const stops = new Uint32Array(NO_STOP + 1);
  const groupSizes = new Int32Array(groups).fill(-1);
  let failures = 0;
  for (let at = 0; at < flags.length; at += 1) {
    stops[part.stop[at]!]! += 1;
    if (part.failure[at] !== NO_FAILURE) failures += 1;
    const of = part.group[at]!;
    if (of >= 0 && part.groupSize[at]! > groupSizes[of]!) groupSizes[of] = part.groupSize[at]!;
  }
  return {
    columns: sumColumns({ reward: part.reward, group: part.group, groups, flags }),
    totals: part.totals,
    failures,
    stops,
    groupSizes,
  };
}

function concatenated(arrays: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(arrays.reduce((total, { length }) => total + length, 0));
  let from = 0;
  for (const array of arrays) {
    whole.set(array, from);
    from += array.length;
  }
  return whole;
}
