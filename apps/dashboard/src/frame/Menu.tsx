import { DropdownMenu } from 'radix-ui';
import { type ReactNode, useState } from 'react';
import { useKeys } from './keyboard.ts';

const floating =
  'z-30 max-h-[70vh] min-w-[180px] overflow-y-auto rounded-[4px] border border-line-strong bg-paper-0 p-1 text-ink-1 shadow-lg outline-none';
const item =
  'flex min-h-[26px] cursor-pointer items-center gap-2 rounded-[3px] px-2 outline-none data-[highlighted]:bg-paper-2 data-[disabled]:opacity-45';

/** A button that opens a list of actions or choices. Non-modal: the page keeps its scroll bar. */
export function Menu({
  label,
  button,
  children,
  align = 'end',
  shortcut,
}: {
  label: string;
  button: ReactNode;
  children: ReactNode;
  align?: 'start' | 'end';
  /** The key that opens it (frame/keymap.ts). */
  shortcut?: string;
}) {
  const [open, setOpen] = useState(false);
  useKeys(shortcut === undefined ? {} : { [shortcut]: () => setOpen(true) });
  return (
    <DropdownMenu.Root modal={false} open={open} onOpenChange={setOpen}>
      <DropdownMenu.Trigger className="button" aria-keyshortcuts={shortcut}>
        {/* In addition to the visible text, because speech control uses the visible text as the name. */}
        <span className="sr-only">{label}: </span>
        {button}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content loop align={align} sideOffset={4} collisionPadding={8} className={floating} aria-label={label}>
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

export function MenuItem({ children, onSelect, disabled = false }: { children: ReactNode; onSelect: () => void; disabled?: boolean }) {
  return (
    <DropdownMenu.Item className={item} onSelect={onSelect} disabled={disabled}>
      {children}
    </DropdownMenu.Item>
  );
}

/** A group of exclusive choices. */
export function MenuChoice<T extends string>({
  title,
  value,
  options,
  onChange,
}: {
  title: string;
  value: T;
  options: readonly { value: T; label: ReactNode; hint?: string }[];
  onChange: (value: T) => void;
}) {
  return (
    <>
      <DropdownMenu.Label className="label px-2 py-1">{title}</DropdownMenu.Label>
      <DropdownMenu.RadioGroup value={value} onValueChange={(chosen) => onChange(chosen as T)}>
        {options.map((option) => (
          <DropdownMenu.RadioItem key={option.value} value={option.value} className={item}>
            <span className="grid w-[12px] place-items-center" aria-hidden="true">
              <DropdownMenu.ItemIndicator>✓</DropdownMenu.ItemIndicator>
            </span>
            <span className="flex-1">{option.label}</span>
            {option.hint && <span className="label">{option.hint}</span>}
          </DropdownMenu.RadioItem>
        ))}
      </DropdownMenu.RadioGroup>
    </>
  );
}

export const MenuLine = () => <DropdownMenu.Separator className="my-1 h-px bg-line" />;
