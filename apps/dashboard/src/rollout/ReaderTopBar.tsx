import type { GroupView, RolloutHeader } from '@palestra/protocol';
import { lazy, Suspense } from 'react';
import { useGuest } from '../frame/guest.ts';
import { TopBar } from '../frame/page.tsx';
import { Crumbs } from './Header.tsx';
import { GroupSteps, ListSteps } from './Steppers.tsx';
import type { ReaderNavigation } from './useReaderNavigation.ts';

// The first paint does not need them.
const ShareButton = lazy(async () => ({ default: (await import('../frame/ShareButton.tsx')).ShareButton }));
const CompareMenu = lazy(async () => ({ default: (await import('./CompareMenu.tsx')).CompareMenu }));
const ActionsMenu = lazy(async () => ({ default: (await import('./ActionsMenu.tsx')).ActionsMenu }));

interface ReaderTopBarProps {
  header: RolloutHeader;
  title: string;
  group: GroupView | undefined;
  /** Index of the selected message. */
  message: number | undefined;
  navigation: ReaderNavigation;
  notify: (text: string) => void;
  print: () => void;
}

/** Breadcrumbs and actions of the page of a rollout. */
export function ReaderTopBar({ header, title, group, message, navigation, notify, print }: ReaderTopBarProps) {
  const { list, fromList, diff, best, openRollout, toggleDiff } = navigation;
  const guest = useGuest();
  return (
    <TopBar title={title} crumbs={<Crumbs header={header} title={title} />}>
      {fromList && !guest && <ListSteps id={header.id} from={list} open={openRollout} />}
      <GroupSteps header={header} size={group && (group.expected ?? group.received)} open={openRollout} />
      <button
        type="button"
        className="button"
        disabled={!best && diff === undefined}
        title={best ? 'Compare with the best sample of the group' : 'This is the best sample of its group'}
        aria-pressed={diff !== undefined}
        onClick={toggleDiff}
        aria-keyshortcuts="d"
      >
        <kbd>d</kbd> Compare with best
      </button>
      {!guest && group && group.rollouts.length > 1 && (
        <Suspense fallback={<Disabled label="Side by side ▾" />}>
          <CompareMenu header={header} group={group} />
        </Suspense>
      )}
      <Suspense fallback={<Disabled label="Share" />}>
        <ShareButton target={{ kind: 'rollout', rollout: header.id, message }} />
      </Suspense>
      <Suspense fallback={<Disabled label="More ▾" />}>
        <ActionsMenu header={header} notify={notify} print={print} />
      </Suspense>
    </TopBar>
  );
}

/** In the place of a button whose code still loads. */
const Disabled = ({ label }: { label: string }) => (
  <button type="button" className="button" disabled>
    {label}
  </button>
);
