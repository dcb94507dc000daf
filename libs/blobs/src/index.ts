export { type BlobBody, type BlobStore, type ByteRange, BlobError, checkKey } from './blob-store.ts';
export { FileBlobStore } from './file/file-blob-store.ts';
export { UrlSigner, type SignedRequest } from './file/url-signer.ts';
export { S3BlobStore } from './s3/s3-blob-store.ts';
