import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';
import { useMedia } from '../frame/media.ts';
import type { Tab } from './side/SidePanel.tsx';

/** The tab of the side panel in the address. `narrow`: the panel takes the place of the transcript, for lack of space beside it. */
export function useSideTab() {
  const { tab } = useSearch({ from: '/rollout/$id' });
  const navigate = useNavigate();
  const narrow = useMedia('screen and (max-width: 1120px)');
  const chooseTab = useCallback(
    (to: Tab | undefined) =>
      void navigate({
        to: '.',
        search: (old: object) => ({ ...old, tab: to }) as never,
        hash: location.hash.slice(1),
        replace: true,
        hashScrollIntoView: false,
      }),
    [navigate],
  );
  return { narrow, tab, chooseTab };
}
