import { formatAbsolute, formatAge } from '../format/time.ts';
import { useNow } from './now.ts';

export function Age({ iso }: { iso: string | null | undefined }) {
  return (
    <time dateTime={iso ?? undefined} title={formatAbsolute(iso)}>
      {formatAge(iso, useNow())}
    </time>
  );
}
