import type { TestProject } from 'vitest/node';
import { buildImages, type Images, removeImages } from './images.ts';

declare module 'vitest' {
  interface ProvidedContext {
    images: Images;
  }
}

/** Builds the images once per run: the files that run them share them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const mark = `run${process.pid}`;
  project.provide('images', await buildImages(mark));
  return () => removeImages(mark);
}
