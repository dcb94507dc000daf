import { type DragEvent, useId, useRef, useState } from 'react';
import { formatBytes, plural } from '../format/number.ts';
import type { ChosenFolder } from './deploy-source.ts';
import { type ChosenFile, chosenFiles, includedFiles } from './pack-folder.ts';
import { droppedFiles } from './dropped-files.ts';

const isArchive = ({ name }: { name: string }): boolean => /\.(?:tar\.gz|tgz)$/.test(name);

/** Chooses a folder or a .tar.gz file, by a button or by dropping it. */
export function FolderChooser({ chosen, onChoose }: { chosen: ChosenFolder | null; onChoose: (chosen: ChosenFolder | null) => void }) {
  const folder = useRef<HTMLInputElement>(null);
  const archive = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const about = useId();

  const attempt = async (work: () => Promise<ChosenFolder>) => {
    setProblem(null);
    try {
      onChoose(await work());
    } catch (error) {
      onChoose(null);
      setProblem((error as Error).message);
    }
  };
  const chooseFiles = (name: string, all: readonly ChosenFile[]) =>
    attempt(async () => {
      const files = await includedFiles(all);
      const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
      return { kind: 'files', name, files, bytes, left: all.length - files.length };
    });
  const chooseArchive = (file: File) =>
    attempt(async () => {
      if (!isArchive(file)) throw new Error(`${file.name} is no .tar.gz file. Drop a folder, or an archive of one.`);
      return { kind: 'archive', name: file.name, archive: file };
    });
  const onFolder = (list: FileList | null) => {
    const files = [...(list ?? [])];
    if (files.length > 0) void chooseFiles(files[0]!.webkitRelativePath.split('/')[0]!, chosenFiles(files));
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    // Entries are only there until the event ends.
    const entry = event.dataTransfer.items[0]?.webkitGetAsEntry();
    const file = event.dataTransfer.files[0];
    if (entry?.isDirectory)
      void droppedFiles(entry as FileSystemDirectoryEntry).then(
        (files) => chooseFiles(entry.name, files),
        (error: Error) => setProblem(error.message),
      );
    else if (file) void chooseArchive(file);
  };
  return (
    <div
      role="group"
      aria-label="Folder to upload"
      aria-describedby={about}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
      className={`flex flex-col gap-2 rounded-[4px] border border-dashed p-3 ${isOver ? 'border-accent bg-accent-wash' : 'border-line-strong'}`}
    >
      <div className="flex flex-wrap items-center gap-2">
        <button type="button" className="button" data-autofocus onClick={() => folder.current!.click()}>
          Choose folder
        </button>
        <button type="button" className="button" onClick={() => archive.current!.click()}>
          Choose .tar.gz file
        </button>
        <span className="text-ink-3">or drop one here</span>
        <input
          ref={folder}
          type="file"
          hidden
          multiple
          aria-label="Folder"
          {...{ webkitdirectory: '' }}
          onChange={(event) => {
            onFolder(event.target.files);
            // The same folder can be chosen again after a change.
            event.target.value = '';
          }}
        />
        <input
          ref={archive}
          type="file"
          hidden
          accept=".tar.gz,.tgz,application/gzip"
          aria-label="Archive"
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (file) void chooseArchive(file);
            event.target.value = '';
          }}
        />
      </div>
      <p role="status" className="[overflow-wrap:anywhere] empty:hidden">
        {chosen &&
          (chosen.kind === 'archive' ? (
            <>
              <span className="strong">{chosen.name}</span>, {formatBytes(chosen.archive.size)}
            </>
          ) : (
            <>
              <span className="strong">{chosen.name}</span>: {plural(chosen.files.length, 'file')}, {formatBytes(chosen.bytes)}
              {chosen.left > 0 && <span className="text-ink-3"> · {plural(chosen.left, 'file')} left out</span>}
            </>
          ))}
      </p>
      <p role="alert" className="text-bad [overflow-wrap:anywhere] empty:hidden">
        {problem}
      </p>
      <p id={about} className="label">
        Left out: .git, .env*, .venv, node_modules and what .dockerignore names. At most 1 GiB of files, 512 MiB compressed.
      </p>
    </div>
  );
}
