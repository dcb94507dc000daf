import { formatBytes, formatCount } from '../format/number.ts';

const gateBytes = 4096;
const gateLines = 200;
const previewCharacters = 1500;
const previewLines = 24;
/** Never put more than this into the page at once; the rest is downloaded as a file. */
const renderCharacters = 400_000;

export const isLong = (text: string): boolean => text.length > gateBytes || text.split('\n', gateLines + 1).length > gateLines;

function preview(text: string): string {
  return text.slice(0, previewCharacters).split('\n').slice(0, previewLines).join('\n');
}

function download(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = 'message.txt';
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Long text shows its beginning and a button that names its size; very long text is offered as a file. */
export function Gated({
  text,
  open,
  toggle,
  render,
}: {
  text: string;
  open: boolean;
  toggle: () => void;
  render: (text: string) => React.ReactNode;
}) {
  if (!isLong(text)) return render(text);
  const lines = formatCount(text.split('\n').length);
  return (
    <>
      {render(open ? text.slice(0, renderCharacters) : preview(text))}
      <div className="mt-1 flex gap-4 font-sans text-[12px] leading-[18px]">
        <button type="button" className="link" aria-expanded={open} onClick={toggle}>
          {open ? 'Show less' : `Show all · ${formatBytes(new Blob([text]).size)}, ${lines} lines`}
        </button>
        {text.length > renderCharacters && (
          <button type="button" className="link" onClick={() => download(text)}>
            Download the whole
          </button>
        )}
      </div>
    </>
  );
}
