import { useQuery } from '@tanstack/react-query';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import { TASK_PAGE, tasksQuery } from '../data/queries.ts';

/** A split of a variant of an environment. */
export interface Place {
  owner: string;
  name: string;
  variant: string;
  split: string;
}

/** The variant that the address names, else the default one. */
export function variantOf({ variants }: EnvironmentDiscoveryView, name: string | undefined) {
  return variants.find((one) => one.name === name) ?? variants.find((one) => one.is_default) ?? variants[0];
}

/** The task of a row, out of the page of tasks that holds it: rows in view ask for their pages, nothing else is read. */
export function useTask({ owner, name, variant, split }: Place, index: number) {
  const page = useQuery(tasksQuery(owner, name, variant, split, Math.floor(index / TASK_PAGE) * TASK_PAGE));
  return { page, task: page.data?.tasks.find((one) => one.index === index) };
}
