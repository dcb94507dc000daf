import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { isGone } from '../data/http.ts';
import { headerQuery, isCurrent, outlineQuery } from '../data/rollout.ts';
import { Crumb, TopBar } from '../frame/page.tsx';
import { Deleted, ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Reader } from './Reader.tsx';

/** One rollout of any length. Header and outline load first; texts load when they scroll into view. */
export function RolloutPage() {
  const { id } = useParams({ from: '/rollout/$id' });
  const header = useQuery(headerQuery(id));
  const firstOutline = useQuery(outlineQuery(id, null)).data;
  // The first outline loads in parallel with the header. It is read again when the header counts more messages.
  const outdated = firstOutline !== undefined && header.data !== undefined && !isCurrent(firstOutline, header.data);
  const outline = useQuery(outlineQuery(id, outdated ? header.data : null));
  const error = header.error ?? outline.error;
  const deleted = header.data?.id === id && isGone(header.error);
  if (deleted || !header.data || !outline.data || header.data.id !== id) {
    return (
      <>
        <TopBar title="Rollout" crumbs={<Crumb>Rollout</Crumb>} />
        {deleted ? (
          <Deleted what="rollout" />
        ) : error ? (
          <ErrorState
            error={error}
            retry={() => {
              void header.refetch();
              void outline.refetch();
            }}
          />
        ) : (
          <SkeletonRows />
        )}
      </>
    );
  }
  return <Reader key={id} header={header.data} outline={outline.data} />;
}
