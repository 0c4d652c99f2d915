//! The services on tokio: one thread over epoll, file reads on the blocking pool, which is tokio's way.

use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as TokioListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, spawn_blocking};

use super::service::{BLOCK, Kind, REQUEST, Service, offset};

/// Starts the server on a thread of its own.
pub fn start(
    service: Service,
    listener: TcpListener,
    connections: usize,
) -> Result<Box<dyn FnOnce() -> Result<(), String>>, String> {
    let said = |error: std::io::Error| format!("tokio: {error}");
    listener.set_nonblocking(true).map_err(said)?;
    let runtime = Builder::new_current_thread().enable_io().build().map_err(said)?;
    let serve_all = async move {
        let listener = TokioListener::from_std(listener)?;
        let mut served = JoinSet::new();
        for _ in 0..connections {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            served.spawn(serve(service.clone(), stream));
        }
        while let Some(ended) = served.join_next().await {
            ended.map_err(std::io::Error::other)??;
        }
        Ok(())
    };
    let server = thread::spawn(move || runtime.block_on(serve_all));
    Ok(Box::new(move || {
        server.join().expect("the server does not panic").map_err(said)
    }))
}

async fn serve(service: Service, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; REQUEST];
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read_exact(&mut request).await {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        match service.kind {
            Kind::Echo => stream.write_all(&request).await?,
            Kind::File => {
                let (file, offset) = (Arc::clone(&service.file), offset(&request));
                let read = spawn_blocking(move || file.read_exact_at(&mut block, offset).map(|()| block));
                block = read.await.map_err(std::io::Error::other)??;
                stream.write_all(&block).await?;
            }
        }
    }
}
