import { useQuery } from '@tanstack/react-query';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import { TASK_PAGE, tasksQuery } from '../data/queries.ts';

/** A split of a variant of an environment. */
export interface SplitAddress {
  owner: string;
  name: string;
  variant: string;
  split: string;
}

/** The variant with this name, else the default variant. */
export function variantOf({ variants }: EnvironmentDiscoveryView, name: string | undefined) {
  return variants.find((one) => one.name === name) ?? variants.find((one) => one.is_default) ?? variants[0];
}

/** The task of a row, from the page of tasks that contains it. Only pages of visible rows are loaded. */
export function useTask({ owner, name, variant, split }: SplitAddress, index: number) {
  const page = useQuery(tasksQuery(owner, name, variant, split, Math.floor(index / TASK_PAGE) * TASK_PAGE));
  return { page, task: page.data?.tasks.find((one) => one.index === index) };
}
