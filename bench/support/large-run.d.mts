import type { Client } from 'pg';

/** Fixture F1; returns the run's number and how many messages it has. The run is called `large`. */
export function fillLargeRun(
  client: Client,
  orgId: string,
  size: { rollouts: number; steps: number },
): Promise<{ run: string; messages: number }>;
export function markSteps(client: Client, run: string): Promise<number>;
