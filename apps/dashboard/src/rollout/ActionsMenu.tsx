import type { RolloutHeader } from '@palestra/protocol';
import { rawUrl, readWholeRollout } from '../data/rollout.ts';
import { formatBytes } from '../format/number.ts';
import { Menu, MenuItem, MenuLine } from '../frame/Menu.tsx';
import { MAX_COPY_BYTES, curlOf, openAiMessages, replayTest } from './snippets.ts';

/** Copies, downloads and prints a rollout. `notify` shows the outcome. */
export function ActionsMenu({ header, notify, print }: { header: RolloutHeader; notify: (text: string) => void; print: () => void }) {
  const copy = async (what: string, text: () => Promise<string> | string) => {
    try {
      await navigator.clipboard.writeText(await text());
      notify(`${what} copied`);
    } catch (error) {
      notify(`Not copied: ${error instanceof Error ? error.message : 'the browser does not allow it'}`);
    }
  };
  const tooLarge = header.bytes > MAX_COPY_BYTES;
  const size = tooLarge ? <span className="label">{formatBytes(header.bytes)}, too large to copy</span> : null;
  return (
    <Menu label="More of this rollout" button="More ▾">
      <MenuItem
        disabled={tooLarge}
        onSelect={() =>
          void copy('OpenAI messages', async () => JSON.stringify(openAiMessages((await readWholeRollout(header.id)).messages), null, 2))
        }
      >
        Copy as OpenAI messages {size}
      </MenuItem>
      <MenuItem
        disabled={tooLarge}
        onSelect={() => void copy('Replay test', async () => replayTest(location.origin, await readWholeRollout(header.id)))}
      >
        Copy replay test {size}
      </MenuItem>
      <MenuItem onSelect={() => void copy('curl', () => curlOf(location.origin, header.id))}>Copy as curl</MenuItem>
      <MenuItem onSelect={() => void copy('Link', () => location.href)}>Copy link to this message</MenuItem>
      <MenuLine />
      <MenuItem
        onSelect={() => {
          const link = document.createElement('a');
          link.href = rawUrl(header.id);
          link.download = `rollout-${header.id}.json`;
          link.click();
        }}
      >
        Download raw events ({formatBytes(header.bytes)})
      </MenuItem>
      <MenuItem onSelect={print}>Print the whole rollout</MenuItem>
    </Menu>
  );
}
