//! The services on monoio: one thread over io_uring.

use std::net::TcpListener;
use std::rc::Rc;
use std::thread;

use monoio::fs::File;
use monoio::io::{AsyncReadRentExt, AsyncWriteRentExt};
use monoio::net::{TcpListener as MonoioListener, TcpStream};
use monoio::{IoUringDriver, RuntimeBuilder};

use super::service::{BLOCK, Kind, REQUEST, Service, offset};

/// Starts the server on a thread of its own.
pub fn start(
    service: Service,
    listener: TcpListener,
    connections: usize,
) -> Result<Box<dyn FnOnce() -> Result<(), String>>, String> {
    let server = thread::spawn(move || {
        let mut runtime = RuntimeBuilder::<IoUringDriver>::new()
            .with_entries(4096)
            .build()?;
        runtime.block_on(serve_all(service, listener, connections))
    });
    Ok(Box::new(move || {
        server
            .join()
            .expect("the server does not panic")
            .map_err(|error: std::io::Error| format!("monoio: {error}"))
    }))
}

async fn serve_all(service: Service, listener: TcpListener, connections: usize) -> std::io::Result<()> {
    let file = Rc::new(File::from_std(service.file.try_clone()?)?);
    let listener = MonoioListener::from_std(listener)?;
    let mut served = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        served.push(monoio::spawn(serve(service.kind, Rc::clone(&file), stream)));
    }
    for ended in served {
        ended.await?;
    }
    Ok(())
}

async fn serve(kind: Kind, file: Rc<File>, mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = vec![0; REQUEST];
    let mut block = vec![0; BLOCK];
    loop {
        let (read, buffer) = stream.read_exact(request).await;
        request = buffer;
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        match kind {
            Kind::Echo => {
                let (written, buffer) = stream.write_all(request).await;
                written?;
                request = buffer;
            }
            Kind::File => {
                let (read, buffer) = file.read_exact_at(block, offset(&request)).await;
                read?;
                let (written, buffer) = stream.write_all(buffer).await;
                written?;
                block = buffer;
            }
        }
    }
}
