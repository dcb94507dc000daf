import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { environmentsQuery } from '../data/queries.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { libraryCommands, nameOfLibraryId, type PythonLibrary } from './python-libraries.ts';

const POLL_MS = 3_000;

/** The commands that serve an environment of a Python library and register it, and the environment as soon as it is there. */
export function AddFromLibrary({ library }: { library: PythonLibrary }) {
  const list = useId();
  const [id, setId] = useState(library.examples[0]!);
  const commands = libraryCommands(library, id.trim(), location.origin);
  const name = nameOfLibraryId(id.trim());
  const found = useQuery({ ...environmentsQuery(name), refetchInterval: POLL_MS }).data?.environments.find((one) => one.name === name);
  return (
    <div className="flex flex-col gap-3">
      <p className="text-ink-2">{library.about}</p>
      <label className="flex flex-col gap-[2px]">
        <span className="label">{library.noun}: one of these, or any other name of the library</span>
        <input className="input mono" list={list} value={id} onChange={(event) => setId(event.target.value)} />
        <datalist id={list}>
          {library.examples.map((example) => (
            <option key={example} value={example} />
          ))}
        </datalist>
      </label>
      {commands === null ? (
        <p className="text-bad">A name has letters, digits, “.”, “:”, “_” and “-”.</p>
      ) : (
        <section aria-label="Commands" className="min-w-0">
          <div className="mb-1 flex items-center justify-between gap-3">
            <h3 className="strong">Run on the machine of this service</h3>
            <CopyButton text={commands} />
          </div>
          <pre className="code-block" tabIndex={0}>
            {commands}
          </pre>
        </section>
      )}
      <p className="text-ink-2">
        It needs Python 3.10, Node.js and your API key. Without a shell there, use any machine that the service reaches, and add its
        address: <code className="mono">--host 10.0.0.5</code>.
      </p>
      <div className="flex items-center justify-end gap-2" aria-live="polite">
        {found === undefined ? (
          <span className="label">Waiting for {name}…</span>
        ) : (
          <Link to="/environments/$owner/$name" params={{ owner: found.owner, name: found.name }} search={{}} className="button primary">
            Open {found.owner}/{found.name}
          </Link>
        )}
      </div>
    </div>
  );
}
