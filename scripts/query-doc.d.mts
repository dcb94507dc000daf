import type { QueryKeyEntry } from '@palestra/query';

export function renderQuery(
  keys: readonly QueryKeyEntry[],
  limits: { textLength: number; depth: number; clauses: number; regexLength: number },
): string;
