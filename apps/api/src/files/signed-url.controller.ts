import type { Readable } from 'node:stream';
import { Controller, Get, Inject, Put, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobStore, SignedRequest, UrlSigner } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import { Public } from '../platform/http/public.decorator.ts';
import { markAuthenticated } from '../platform/http/connections.ts';
import { discardRest } from '../platform/http/body.ts';
import { BLOB_STORE, URL_SIGNER } from '../platform/tokens.ts';
import { UploadService } from './upload.service.ts';

/**
 * Signed URLs of this service: reads of the file store, and uploads to any store, because S3 cannot limit the size of a signed PUT. The
 * signature replaces the key.
 */
@Controller('blobs')
@Public('signed')
export class SignedUrlController {
  constructor(
    @Inject(BLOB_STORE) private readonly blobs: BlobStore,
    @Inject(URL_SIGNER) private readonly signer: UrlSigner,
    private readonly uploads: UploadService,
  ) {}

  @Put('*')
  @RouteConfig({ streamBody: true })
  async put(@Req() request: FastifyRequest) {
    const { key, contentType, maxBytes = 0 } = this.#verify(request);
    if (contentType !== undefined && request.headers['content-type'] !== contentType) {
      throw new PalestraError('invalid_request', { detail: `This URL accepts the content type ${contentType} only.` });
    }
    const length = request.headers['content-length'];
    return this.uploads
      .store({
        key,
        contentType: contentType ?? 'application/octet-stream',
        maxBytes,
        contentLength: length === undefined ? null : Number(length),
        body: request.body as Readable | undefined,
      })
      .catch((error: unknown) => discardRest(request.raw, error));
  }

  @Get('*')
  async get(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { key, fileName } = this.#verify(request);
    const blob = await this.blobs.get(key);
    // Uploaded files must not run as a page of this origin.
    reply.headers({
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'content-length': blob.size,
    });
    reply.header('content-disposition', `attachment${fileName === undefined ? '' : `; filename*=UTF-8''${encodeURIComponent(fileName)}`}`);
    await reply.type(blob.contentType).send(blob.body);
  }

  #verify(request: FastifyRequest): SignedRequest {
    const url = new URL(request.url, 'http://localhost');
    const signed = this.signer.verify(request.method, decodeKey(url.pathname.slice('/blobs/'.length)), url.searchParams);
    if (!signed) throw new PalestraError('url_expired');
    markAuthenticated(request.raw);
    return signed;
  }
}

function decodeKey(path: string): string {
  try {
    return path.split('/').map(decodeURIComponent).join('/');
  } catch (error) {
    throw new PalestraError('url_expired', { cause: error });
  }
}
