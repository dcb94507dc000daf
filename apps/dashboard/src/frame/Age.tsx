import { formatAbsolute, formatAge } from '../format/time.ts';
import { useNow } from './now.ts';

/** The time since `iso`. `short` omits the word “ago”. */
export function Age({ iso, short = false }: { iso: string | null | undefined; short?: boolean }) {
  const age = formatAge(iso, useNow());
  return (
    <time dateTime={iso ?? undefined} title={formatAbsolute(iso)}>
      {short ? age.replace(/ ago$/, '') : age}
    </time>
  );
}
