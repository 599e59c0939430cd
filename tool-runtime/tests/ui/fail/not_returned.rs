use tool_runtime::tool_server;

pub struct Point {
    pub x: f64,
}

#[tool_server(name = "points", version = "1.0.0")]
mod points {
    use super::Point;

    /// Returns a struct.
    #[tool]
    pub async fn bare() -> Point {
        Point { x: 1.0 }
    }

    /// Returns a struct, perhaps.
    #[tool]
    pub async fn result() -> Result<Point, String> {
        Ok(Point { x: 1.0 })
    }

    /// Reads a struct.
    #[resource(uri = "points://first")]
    pub fn resource() -> Point {
        Point { x: 1.0 }
    }

    /// Says a struct.
    #[prompt]
    pub fn prompt() -> Point {
        Point { x: 1.0 }
    }

    /// Fails with something that is no error.
    #[tool]
    pub fn fails() -> Result<String, Point> {
        Err(Point { x: 1.0 })
    }
}

fn main() {}
