import { Popover as Radix } from 'radix-ui';
import type { ReactNode } from 'react';

/** A button that opens a small panel, for example an explanation or a short form. */
export function Popover({
  label,
  button,
  className = 'button',
  align = 'start',
  children,
}: {
  label: string;
  button: ReactNode;
  className?: string;
  align?: 'start' | 'center' | 'end';
  children: ReactNode;
}) {
  return (
    <Radix.Root>
      <Radix.Trigger className={className} aria-label={label}>
        {button}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          aria-label={label}
          // Long content scrolls by keyboard.
          tabIndex={0}
          className="z-30 max-h-[min(70vh,var(--radix-popover-content-available-height))] w-[340px] max-w-[92vw] overflow-y-auto rounded-[4px] border border-line-strong bg-paper-0 p-3 text-ink-1 shadow-lg outline-none"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
