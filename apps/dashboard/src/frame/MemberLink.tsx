import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGuest } from './guest.ts';

interface Shown {
  className?: string | undefined;
  children?: ReactNode;
}

/** A link to a page that a share link does not show: guests see its text only. */
export const MemberLink = ((props: Shown) => {
  const guest = useGuest();
  if (guest) return <span className={props.className?.replaceAll(/\S*hover:\S+|\blink\b/g, '')}>{props.children}</span>;
  return <Link {...(props as { to: string })} />;
}) as unknown as typeof Link;
