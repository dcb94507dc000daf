import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { alertNewsQuery } from '../data/alerts.ts';
import { Popover } from './Popover.tsx';

const AlertNews = lazy(() => import('../alerts/AlertNews.tsx').then((module) => ({ default: module.AlertNews })));

/** The number of unread changes of alerts, and their list. */
export function AlertBell() {
  const unread = useQuery(alertNewsQuery).data?.unread ?? 0;
  const count = unread >= 100 ? '99+' : String(unread);
  return (
    <Popover
      label={unread === 0 ? 'Alerts' : `Alerts, ${count} unread`}
      className="relative grid size-[28px] flex-none place-items-center rounded-[4px] text-ink-3 hover:bg-paper-2 hover:text-ink-1"
      button={
        <>
          <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
            <path
              d="M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13.5a1.6 1.6 0 0 0 3 0"
              fill="none"
              stroke="currentColor"
              strokeWidth="1.3"
              strokeLinecap="round"
              strokeLinejoin="round"
            />
          </svg>
          {unread > 0 && (
            <span className="absolute -right-[3px] -top-[2px] min-w-[15px] rounded-full bg-bad px-[3px] text-center text-[10px] leading-[15px] text-paper-0 tabular-nums">
              {count}
            </span>
          )}
        </>
      }
    >
      <Suspense>
        <AlertNews />
      </Suspense>
    </Popover>
  );
}
