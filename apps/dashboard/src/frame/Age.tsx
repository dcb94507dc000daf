import { formatAbsolute, formatAge } from '../format/time.ts';
import { useNow } from './now.ts';

/** `short`: without the word “ago”, where the column says what it is. */
export function Age({ iso, short = false }: { iso: string | null | undefined; short?: boolean }) {
  const age = formatAge(iso, useNow());
  return (
    <time dateTime={iso ?? undefined} title={formatAbsolute(iso)}>
      {short ? age.replace(/ ago$/, '') : age}
    </time>
  );
}
