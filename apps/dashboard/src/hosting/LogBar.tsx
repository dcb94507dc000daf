import { LOG_SEVERITIES, type LogSeverity } from '@palestra/protocol';
import { type ReactNode, useRef } from 'react';
import { useKeys } from '../frame/keyboard.ts';

const names: Record<LogSeverity, string> = { debug: 'All lines', info: 'Info and above', warning: 'Warnings and errors', error: 'Errors' };

export const severityOf = (text: string | undefined): LogSeverity => LOG_SEVERITIES.find((one) => one === text) ?? 'debug';

interface Props {
  search: string;
  onSearch: (text: string) => void;
  severity: LogSeverity;
  onSeverity: (severity: LogSeverity) => void;
  /** More controls. */
  children?: ReactNode;
}

/** Search and least severity of a log. */
export function LogBar({ search, onSearch, severity, onSeverity, children }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => input.current?.focus() });
  return (
    <div
      role="search"
      aria-label="Filter the log"
      className="flex flex-none flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]"
    >
      <input
        ref={input}
        type="search"
        className="input w-[220px] max-[560px]:w-full"
        placeholder="Search the log  /"
        aria-label="Search the log"
        maxLength={200}
        value={search}
        onChange={(event) => onSearch(event.target.value)}
      />
      <select
        className="input"
        aria-label="Severity"
        title="The severity is guessed from the text of a line."
        value={severity}
        onChange={(event) => onSeverity(severityOf(event.target.value))}
      >
        {LOG_SEVERITIES.map((one) => (
          <option key={one} value={one}>
            {names[one]}
          </option>
        ))}
      </select>
      {children}
    </div>
  );
}
