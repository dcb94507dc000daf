import path from 'node:path';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    conditions: ['@palestra/source', 'module', 'browser', 'development|production'],
    alias: {
      'node:crypto': path.join(import.meta.dirname, 'src/checker/node-crypto.ts'),
      // Of @balena/dockerignore.
      path: path.join(import.meta.dirname, 'src/hosting/path.ts'),
    },
  },
  // Inlined assets would be data: URLs, which the CSP (img-src, font-src 'self') refuses.
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    // Of the packages inside the bundle, which ask to be named where they are published.
    license: { fileName: 'THIRD-PARTY-LICENSES.txt' },
  },
});
