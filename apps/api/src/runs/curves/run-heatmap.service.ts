import { Injectable } from '@nestjs/common';
import { emptyHistogram, histogramEdges, mergeHistograms, type RewardHistogram } from '@palestra/metrics';
import { PHASES, type RunHeatmapQuery } from '@palestra/protocol';
import { codeOf } from '../../store/vocabulary-codes.ts';
import { axisOf } from './axis.ts';
import { mainPhase } from './main-phase.ts';
import { histogramOf, StepFiguresService } from '../../store/figures/step-figures.service.ts';

/** Counts by step and bin. The ranges of all histograms are on one ladder, so that merging them is exact. */
@Injectable()
export class RunHeatmapService {
  constructor(private readonly figures: StepFiguresService) {}

  async heatmap(runSeq: number, { x, y, bins, max, ...selection }: RunHeatmapQuery) {
    const read = await this.figures.steps({ runSeq, ...selection });
    const main = mainPhase(read.rows, selection.phase);
    const { phase } = main;
    const windows = x === 'window' || main.rows.length === 0 ? await this.figures.windows({ runSeq, ...selection }) : [];
    const arrived = windows.filter((row) => row.phase === codeOf(PHASES, phase));
    const known = arrived.length > 0 ? arrived : main.rows;
    const { rows, incomplete } = y === 'reward' ? { rows: known, incomplete: false } : await this.figures.withHistograms(runSeq, known, y);
    const parts = rows.map((row) => ({ step: row.step, histogram: histogramOf(row, y) }));
    const whole = parts.reduce(
      (all, part) => mergeHistograms(all, { ...part.histogram, counts: emptyHistogram().counts }),
      emptyHistogram(),
    );
    const frame: RewardHistogram = { ...whole, counts: emptyHistogram().counts };
    const byStep = new Map<number, RewardHistogram>();
    for (const { step, histogram } of parts) byStep.set(step, mergeHistograms(byStep.get(step) ?? frame, histogram));
    const steps = [...byStep];
    const width = Math.max(1, Math.ceil(steps.length / max));
    const columns = Array.from({ length: Math.ceil(steps.length / width) }, (_column, at) => steps.slice(at * width, (at + 1) * width));
    const fold = 50 / bins;
    const spans = new Map(arrived.map(({ step, window }) => [step, window]));
    return {
      ...axisOf(known, x),
      y,
      phase,
      edges: histogramEdges(frame).filter((_edge, at) => at % fold === 0),
      from: columns.map((column) => spans.get(column[0]![0])?.from ?? column[0]![0]),
      to: columns.map((column) => spans.get(column.at(-1)![0])?.to ?? column.at(-1)![0]),
      counts: columns.map((column) => folded(column.map(([, histogram]) => histogram).reduce(mergeHistograms, frame).counts, fold)),
      incomplete,
    };
  }
}

const folded = (counts: readonly number[], by: number): number[] =>
  Array.from({ length: counts.length / by }, (_bin, at) => counts.slice(at * by, (at + 1) * by).reduce((a, b) => a + b, 0));
