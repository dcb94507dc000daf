import { Injectable } from '@nestjs/common';
import { renderAsync } from '@resvg/resvg-js';
import { SingleFlight } from '@palestra/kit';
import { LRUCache } from 'lru-cache';
import type { LoadedShare } from '../accounts/share-access.ts';
import { TenantConcurrency } from '../platform/tenant-concurrency.ts';
import { chartSvg } from './share-chart.ts';
import { type Preview, SharePreviews } from './share-preview.service.ts';

/** Link previews in memory: crawlers of one chat ask for a page and its image, often several times. A PNG has some 20 kB. */
const CACHED = 200;
const CACHE_MS = 60_000;

interface Rendered {
  preview: Preview;
  png: Promise<Buffer> | null;
}

/** Previews of links with their images. */
@Injectable()
export class ShareImages {
  readonly #cache = new LRUCache<string, Rendered>({ max: CACHED, ttl: CACHE_MS });
  readonly #loads = new SingleFlight<Rendered | null>();
  readonly #limits = new TenantConcurrency('link previews', { owner: 4, all: 16 });

  constructor(private readonly previews: SharePreviews) {}

  /** Null when what the link shows was deleted. Throws `capacity_exhausted`. */
  async preview(share: LoadedShare): Promise<Preview | null> {
    return (await this.#of(share))?.preview ?? null;
  }

  /** A PNG of the chart. Null when what the link shows was deleted. Throws `capacity_exhausted`. */
  async image(share: LoadedShare): Promise<Buffer | null> {
    const found = await this.#of(share);
    if (found === null) return null;
    // resvg draws in a thread of libuv's pool.
    found.png ??= this.#limits.use(share.orgId, async () =>
      (await renderAsync(chartSvg(found.preview.chart), { font: { loadSystemFonts: false } })).asPng(),
    );
    return found.png.catch((error: unknown) => {
      found.png = null;
      throw error;
    });
  }

  async #of(share: LoadedShare): Promise<Rendered | null> {
    const cached = this.#cache.get(share.id);
    if (cached) return cached;
    return this.#loads.do(share.id, () =>
      this.#limits.use(share.orgId, async () => {
        const preview = await this.previews.of(share);
        if (preview === null) return null;
        const rendered: Rendered = { preview, png: null };
        this.#cache.set(share.id, rendered);
        return rendered;
      }),
    );
  }
}
