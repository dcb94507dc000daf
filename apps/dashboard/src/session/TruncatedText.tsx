import { plural } from '../format/number.ts';
import { isLong, previewOf, sizeText } from '../text/preview.ts';

/** The page renders at most this much. The whole text can be downloaded. */
const MAX_RENDERED_CHARACTERS = 400_000;

function download(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = 'message.txt';
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Shows the beginning of a long text, and a button with its size. A very long text can be downloaded. */
export function TruncatedText({
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
  const lines = plural(text.split('\n').length, 'line');
  return (
    <>
      {render(open ? text.slice(0, MAX_RENDERED_CHARACTERS) : previewOf(text))}
      <div className="mt-1 flex gap-4 font-sans text-[12px] leading-[18px]">
        <button type="button" className="link" aria-expanded={open} onClick={toggle}>
          {open ? 'Show less' : `Show all · ${sizeText(text)}, ${lines}`}
        </button>
        {text.length > MAX_RENDERED_CHARACTERS && (
          <button type="button" className="link" onClick={() => download(text)}>
            Download all
          </button>
        )}
      </div>
    </>
  );
}
